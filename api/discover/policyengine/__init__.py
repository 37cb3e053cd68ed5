"""/policyengine: policies, tags, regular expressions, applications."""
