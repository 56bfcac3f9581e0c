"""The hardware units: one file each, from their PTX forms to what they do."""
