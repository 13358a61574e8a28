package targets

// DefaultFileName is the default name of a group's file or folder.
func DefaultFileName(group string, format Format) string {
	switch format {
	case FormatTemplate:
		return group + ".out"
	case FormatDirectory:
		return group
	}
	return group + "." + string(format)
}

// Formats lists all formats; the first is the default.
func Formats() []Format {
	return []Format{
		FormatYAML, FormatJSON, FormatDotenv, FormatBash, FormatProperties, FormatTemplate,
		FormatJavaProperties, FormatEnvFile, FormatDirectory, FormatJWKS, FormatJWKSPublic,
	}
}
