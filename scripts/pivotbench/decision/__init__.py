"""Who wins and why: rounds compared, risk spent, what is out, what is said."""
