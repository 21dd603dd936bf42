package propose

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// origin is where the leads come from, as far as the file tells.
type origin struct {
	key, label string // of the lead's type
	why        string
}

// system is a CRM or form service, known by headers that go together in its
// exports; two of them will do. A name that ends in … begins such a header.
type system struct {
	key, label string
	headers    []string
}

var systems = []system{
	{"krayin-lead", "Krayin lead", []string{"lead_pipeline_stage_id", "lead_pipeline_id", "lead_type_id", "lead_value"}},
	{"facebook-lead-ad", "Facebook lead ad", []string{"adset_id", "ad_id", "form_id", "is_organic", "adset_name"}},
	{"dynamics-lead", "Dynamics lead", []string{"(do not modify) lead", "(do not modify) row checksum", "(do not modify) modified on"}},
	{"dynamics-lead", "Dynamics lead", []string{"leadid", "statecode", "statuscode", "emailaddress1", "address1_city"}},
	{"pipedrive-deal", "Pipedrive deal", []string{"deal - …", "person - …", "organization - …", "lead - …"}},
	{"hubspot-lead", "HubSpot lead", []string{"lifecycle stage", "contact owner", "record id - contact", "hubspot owner", "create date", "lead status"}},
	{"hubspot-lead", "HubSpot lead", []string{"hs_object_id", "hs_lead_status", "lifecyclestage", "properties.…", "hubspot_owner_id"}},
	{"suitecrm-lead", "SuiteCRM lead", []string{"primary address street", "primary address city", "status description", "assigned user"}},
	{"suitecrm-lead", "SuiteCRM lead", []string{"primary_address_street", "assigned_user_id", "date_entered", "status_description"}},
	{"salesforce-lead", "Salesforce lead", []string{"firstname", "lastname", "leadsource", "mobilephone", "isconverted", "postalcode", "attributes.…"}},
	{"salesforce-lead", "Salesforce lead", []string{"lead owner", "lead id", "company / account", "unread by owner", "last modified"}},
	{"zoho-lead", "Zoho lead", []string{"lead owner", "lead status", "created time", "record id", "email opt out"}},
	{"odoo-lead", "Odoo lead", []string{"expected revenue", "expected_revenue", "external id", "sales team", "team_id", "stage_id", "contact_name", "partner_name"}},
}

// generic are words of file names that say nothing of where the leads come from.
var generic = []string{
	"lead", "leads", "export", "exports", "data", "import", "report", "list", "liste", "contacts", "contact", "file", "copy", "kopie",
	"final", "new", "sheet", "table", "download", "all", "csv", "xlsx", "kontakte", "daten", "tmp", "temp", "test", "sample", "v",
}

// originOf knows the system by its headers, else the file by its name.
func (t *table) originOf() origin {
	var headers []string
	for _, name := range t.names {
		headers = append(headers, strings.ToLower(name))
	}
	for _, c := range t.numbered {
		headers = append(headers, strings.ToLower(c.header))
	}
	for _, s := range systems {
		found := 0
		for _, h := range s.headers {
			prefix, begins := strings.CutSuffix(h, "…")
			if slices.ContainsFunc(headers, func(header string) bool { return header == prefix || begins && strings.HasPrefix(header, prefix) }) {
				found++
			}
		}
		if found >= 2 {
			return origin{s.key, s.label, "the columns look like an export of " + strings.Fields(s.label)[0]}
		}
	}
	if list := fileWords(t.in.File); len(list) > 0 {
		label := strings.Join(list, " ") + " lead"
		return origin{strings.Join(list, "-") + "-lead", strings.ToUpper(label[:1]) + label[1:], "from the file's name"}
	}
	return origin{"imported-lead", "Imported lead", "nothing tells where the leads come from"}
}

// baseName is the file's name without its folders.
func baseName(file string) string { return path.Base(strings.ReplaceAll(file, "\\", "/")) }

// fileWords are the words of the file's name that say something, in plain
// letters and no more than four.
func fileWords(file string) []string {
	base, _, _ := strings.Cut(baseName(file), ".")
	var list []string
	for _, w := range words(base) {
		plain := !strings.ContainsFunc(w, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) })
		if plain && len(w) > 1 && !slices.Contains(generic, w) && len(list) < 4 {
			list = append(list, w)
		}
	}
	return list
}
