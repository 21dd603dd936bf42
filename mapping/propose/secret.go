package propose

import (
	"math/big"
	"slices"
	"strings"
)

// secretNames are headers, as joined words, of what no lead should carry.
var secretNames = []string{
	"password", "passwd", "pwd", "passphrase", "passwort", "kennwort", "motdepasse", "contrasena", "clave", "senha",
	"parola", "wachtwoord", "haslo", "losenord", "adgangskode", "passord", "pin", "pincard", "secret", "clientsecret",
	"token", "accesstoken", "refreshtoken", "apikey", "apitoken", "authtoken", "privatekey", "securityanswer",
	"creditcard", "creditcardnumber", "cardnumber", "ccnumber", "kreditkarte", "kreditkartennummer", "cartedecredit",
	"cartebancaire", "tarjetadecredito", "cartadicredito", "cartaodecredito", "cvv", "cvc", "cvv2", "cardcode",
	"iban", "bankaccount", "accountiban", "kontonummer", "bankverbindung", "bankaccountnumber",
	"ssn", "socialsecurity", "socialsecuritynumber", "socialsecurityno", "sozialversicherungsnummer", "svnummer",
	"numerodesecuritesociale", "nir", "nationalid", "nationalidnumber", "nationalinsurancenumber", "personnummer",
	"fodselsnummer", "cpr", "cprnummer", "pesel", "codicefiscale", "cpf", "bsn", "burgerservicenummer", "dni", "curp",
	"passport", "passportnumber", "passnummer", "reisepassnummer", "ausweisnummer", "personalausweisnummer",
	"driverslicense", "driverslicensenumber", "driverlicense", "driverlicensenumber", "driverslicenseno",
	"fuhrerscheinnummer", "taxid", "steuerid", "steueridentifikationsnummer", "tin",
}

// secretWords are single words that make any header the name of a secret.
var secretWords = []string{
	"password", "passwd", "passwort", "kennwort", "iban", "ssn", "cvv", "cvc", "secret", "passwords", "pesel",
	"personnummer", "wachtwoord", "contrasena", "senha",
}

// isSecret reports whether the column should not go into a lead: by its name, or
// because nearly all of its cells are secrets by their check digits.
func (c *column) isSecret() bool {
	if slices.Contains(secretNames, joined(c.name.words)) ||
		slices.ContainsFunc(c.name.words, func(w string) bool { return slices.Contains(secretWords, w) }) {
		return true
	}
	return c.profile.filled >= 3 && c.profile.share(kindSecret) >= 0.8
}

// gaps are what people put between the groups of long numbers.
var gaps = strings.NewReplacer(" ", "", "-", "")

// looksSecret takes cards, IBANs, US social security numbers and signed tokens.
func looksSecret(s string) bool {
	if strings.HasPrefix(s, "eyJ") && strings.Count(s, ".") == 2 {
		return true
	}
	if !strings.ContainsAny(s, "0123456789") || len(s) < len("123-45-6789") {
		return false
	}
	plain := gaps.Replace(s)
	return isCard(plain) || isIBAN(plain) || shape(s) == "9-9-9" && len(s) == 11 && s[3] == '-' && s[6] == '-'
}

// isCard checks length, first digit and check digit of a payment card's number.
func isCard(s string) bool {
	if len(s) < 14 || len(s) > 16 || !isNumber(s) || s[0] < '3' || s[0] > '6' {
		return false
	}
	sum := 0
	for i := range len(s) {
		digit := int(s[len(s)-1-i] - '0')
		if i%2 == 1 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}

// isIBAN checks form and check digits (ISO 13616).
func isIBAN(s string) bool {
	if len(s) < 15 || len(s) > 34 || !isNumber(s[2:4]) {
		return false
	}
	var digits strings.Builder
	for i, c := range []byte(s[4:] + s[:4]) {
		switch {
		case c >= '0' && c <= '9' && i < len(s)-4 || c >= '0' && c <= '9' && i >= len(s)-2:
			digits.WriteByte(c)
		case c >= 'A' && c <= 'Z':
			digits.WriteString(big.NewInt(int64(c-'A') + 10).String())
		default:
			return false
		}
	}
	n, ok := new(big.Int).SetString(digits.String(), 10)
	return ok && new(big.Int).Mod(n, big.NewInt(97)).Int64() == 1
}
