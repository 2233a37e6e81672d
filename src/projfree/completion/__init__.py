"""Matrix completion from ratings, with recommendations and a certificate."""
