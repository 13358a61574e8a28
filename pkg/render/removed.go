package render

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// replacements says what to use instead of functions that other programs offer, by the
// function's name. Their results are doubtful, depend on more than the arguments, or have
// another name here.
var replacements = sync.OnceValue(func() map[string]string {
	instead := map[string]string{}
	for _, row := range []struct{ names, use string }{
		{"abbrev", "trunc"},
		{"abbrevboth substring", "substr"},
		{"initials", "regexFindAll"},
		{"title untitle swapcase", "upper or lower"},
		{"camelcase kebabcase snakecase", "regexReplaceAll, upper or lower"},
		{"plural", "ternary"},
		{"cat", "print"},
		{"wrap wrapWith", "regexReplaceAll"},
		{"trimall", "trimAll"},
		{"add1", "add"},
		{"biggest", "max"},
		{"int64 float64", "int"},
		{"toDecimal", "atoi"},
		{"add1f addf subf mulf divf maxf minf round floor ceil", "add, sub, mul or div, with whole numbers"},
		{"seq", "until or untilStep"},
		{"tuple", "list"},
		{"push", "append"},
		{"chunk", "slice"},
		{"compact", "without"},
		{"toStrings", "toString for each element"},
		{"pluck", "get"},
		{"all", "and"},
		{"any", "or"},
		{"kindOf typeIs typeIsLike typeOf", "kindIs"},
		{"clean isAbs osIsAbs osClean ext osExt", "regexMatch or regexReplaceAll"},
		{"osBase", "base"},
		{"osDir", "dir"},
		{"urlJoin", "print, with urlquery for each part"},
		{"semver semverCompare", "regexMatch"},
		{"mustAppend mustPush", "append"},
		{"mustCompact", "without"},
		{"mustChunk mustSlice", "slice"},
		{"mustDeepCopy", "deepCopy"}, {"mustFirst", "first"}, {"mustFromJson", "fromJson"}, {"mustHas", "has"}, {"mustInitial", "initial"},
		{"mustLast", "last"}, {"mustMerge", "merge"}, {"mustMergeOverwrite", "mergeOverwrite"}, {"mustPrepend", "prepend"},
		{"mustRegexFind", "regexFind"}, {"mustRegexFindAll", "regexFindAll"}, {"mustRegexMatch", "regexMatch"},
		{"mustRegexReplaceAll", "regexReplaceAll"}, {"mustRegexReplaceAllLiteral", "regexReplaceAllLiteral"},
		{"mustRegexSplit", "regexSplit"}, {"mustRest", "rest"}, {"mustReverse", "reverse"}, {"mustToJson", "toJson"},
		{"mustToPrettyJson", "toPrettyJson"}, {"mustToRawJson", "toRawJson"}, {"mustUniq", "uniq"}, {"mustWithout", "without"},
		{"toYaml", "toJson, which YAML contains"},
		{"fromYaml", "fromJson, with a value in JSON"},
		{"b64encode base64Encode", "b64enc"},
		{"b64decode base64Decode", "b64dec"},
		{"toJSON parseJSON", "toJson or fromJson"},
		{"toUpper", "upper"}, {"toLower", "lower"}, {"trimSpace", "trim"}, {"replaceAll", "replace"}, {"sha256Hex", "sha256sum"},
		{"pkcs12key pkcs12keyPass pkcs12cert pkcs12certPass", "a variable for the certificate and one for the key, in PEM"},
		{"pemToPkcs12 pemToPkcs12Pass fullPemToPkcs12 fullPemToPkcs12Pass pemTruststoreToPKCS12 pemTruststoreToPKCS12Pass", "a variable with the archive, in base64"},
		{"filterPEM filterCertChain certSANs pemCertificate pemPrivateKey", "a variable for each part, in PEM"},
		{"jwkPublicKeyPem jwkPrivateKeyPem", "a variable with the key in PEM"},
		{"randAlpha randAlphaNum randAscii randBytes randInt randNumeric shuffle uuidv4 genPrivateKey genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey bcrypt htpasswd derivePassword", "a set of the rotation, which makes such values"},
		{"now date dateInZone dateModify htmlDate ago toDate unixEpoch duration env expandenv getHostByName", "a variable, because a template depends on nothing else"},
	} {
		for name := range strings.FieldsSeq(row.names) {
			instead[name] = row.use
		}
	}
	return instead
})

// undefinedFunction matches the parser's message for an unknown function.
var undefinedFunction = regexp.MustCompile(`function "(\w+)" not defined$`)

// withReplacement adds to the parser's error what to use instead of an unknown function.
func withReplacement(err error) error {
	if found := undefinedFunction.FindStringSubmatch(err.Error()); found != nil {
		if use := replacements()[found[1]]; use != "" {
			return fmt.Errorf("%w; use %s", err, use)
		}
	}
	return err
}
