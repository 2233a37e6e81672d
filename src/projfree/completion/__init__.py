"""Matrix completion: ratings in, ratings and recommendations out, with a certificate."""
