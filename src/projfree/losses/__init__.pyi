# isort: skip_file
# In the order of tables; a new one is a line here.

from projfree.losses.squared import Squared as Squared
from projfree.losses.huber import Huber as Huber
from projfree.losses.biweight import BiWeight as BiWeight
from projfree.losses.quantile import Quantile as Quantile
from projfree.losses.log_link import Poisson as Poisson
from projfree.losses.log_link import Gamma as Gamma
from projfree.losses.logistic import Logistic as Logistic
from projfree.losses.squared_hinge import SquaredHinge as SquaredHinge
from projfree.losses.squared_sigmoid import SquaredSigmoid as SquaredSigmoid
from projfree.losses.softmax import Softmax as Softmax
from projfree.losses.base import Loss as Loss
from projfree.losses.catalogue import BY_NAME as BY_NAME
from projfree.losses.catalogue import LOSSES as LOSSES
