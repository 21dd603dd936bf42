package propose

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/mapping"
)

// partsOf is what a file with these headers and no rows comes to: "part=header".
func partsOf(headers ...string) []string {
	t := newTable(Input{File: "f.csv", Source: mapping.Source{Format: "csv", Columns: headers}, Complete: true})
	var list []string
	d := newDraft(t)
	for p, c := range d.parts {
		list = append(list, string(p)+"="+c.header)
	}
	if d.Organization.Column != nil {
		list = append(list, "organization="+d.Organization.Column.header)
	}
	if d.Key.Column != nil {
		list = append(list, "key="+d.Key.Column.header)
	}
	slices.Sort(list)
	return list
}

func TestHeadersOfManyLanguages(t *testing.T) {
	for _, test := range []struct{ name, headers, want string }{
		{
			"snake", "lead_id|first_name|last_name|email|phone|zip_code|dealer_id|created_at",
			"created=created_at|email=email|first=first_name|key=lead_id|last=last_name|organization=dealer_id|phone=phone|postal=zip_code",
		},
		{
			"camel", "id|firstName|lastName|eMail|phoneNumber|postalCode|streetAddress|companyName",
			"company=companyName|email=eMail|first=firstName|key=id|last=lastName|phone=phoneNumber|postal=postalCode|street=streetAddress",
		},
		{
			"prefixes", "Lead: ID|Lead: First Name|contact_last_name|Contact E-Mail|billing_city|Lead Owner Email|Owner Phone",
			"city=billing_city|email=Contact E-Mail|first=Lead: First Name|key=Lead: ID|last=contact_last_name",
		},
		{
			"dynamics names", "leadid|emailaddress1|telephone1|mobilephone|address1_city|address1_postalcode|address1_line1|companyname",
			"city=address1_city|company=companyname|email=emailaddress1|key=leadid|mobile=mobilephone|phone=telephone1|postal=address1_postalcode|street=address1_line1",
		},
		{
			"questions", "What is your full name?|Please enter your e-mail address|Your phone number|Which city do you live in?",
			"city=Which city do you live in?|email=Please enter your e-mail address|full=What is your full name?|phone=Your phone number",
		},
		{
			"German", "Anrede|Vorname|Nachname|E-Mail-Adresse|Telefonnummer|Handy|Straße|Haus-Nr.|PLZ|Ort|Land|Firma|Nachricht|Händlernummer|Eingang am|Kunden-Nr.",
			"city=Ort|company=Firma|country=Land|created=Eingang am|email=E-Mail-Adresse|first=Vorname|house=Haus-Nr.|key=Kunden-Nr.|last=Nachname|message=Nachricht|mobile=Handy|organization=Händlernummer|phone=Telefonnummer|postal=PLZ|salutation=Anrede|street=Straße",
		},
		{"German spelled out", "HAENDLER-ID|STRASSE|GESCHAEFTLICHE TELEFONNR|GROESSE", "organization=HAENDLER-ID|phone=GESCHAEFTLICHE TELEFONNR|street=STRASSE"},
		{
			"French", "Prénom|Nom de famille|Adresse e-mail|Téléphone|Code postal|Ville|Pays|Société|Message|Date de création|Identifiant",
			"city=Ville|company=Société|country=Pays|created=Date de création|email=Adresse e-mail|first=Prénom|key=Identifiant|last=Nom de famille|message=Message|phone=Téléphone|postal=Code postal",
		},
		{
			"Spanish", "Nombre|Apellidos|Correo electrónico|Móvil|Código postal|Ciudad|País|Empresa|Mensaje|Fecha de creación",
			"city=Ciudad|company=Empresa|country=País|created=Fecha de creación|email=Correo electrónico|first=Nombre|last=Apellidos|message=Mensaje|phone=Móvil|postal=Código postal",
		},
		{
			"Italian", "Nome|Cognome|Indirizzo e-mail|Cellulare|CAP|Città|Provincia|Nazione|Azienda|Messaggio",
			"city=Città|company=Azienda|country=Nazione|email=Indirizzo e-mail|first=Nome|last=Cognome|message=Messaggio|phone=Cellulare|postal=CAP|state=Provincia",
		},
		{
			"Portuguese", "Nome completo|E-mail|Telemóvel|CEP|Cidade|País|Empresa|Mensagem",
			"city=Cidade|company=Empresa|country=País|email=E-mail|full=Nome completo|message=Mensagem|phone=Telemóvel|postal=CEP",
		},
		{
			"Dutch", "Voornaam|Tussenvoegsel|Achternaam|E-mailadres|Telefoonnummer|Postcode|Woonplaats|Land|Bedrijf|Opmerkingen",
			"city=Woonplaats|company=Bedrijf|country=Land|email=E-mailadres|first=Voornaam|last=Achternaam|message=Opmerkingen|middle=Tussenvoegsel|phone=Telefoonnummer|postal=Postcode",
		},
		{
			"Polish", "Imię|Nazwisko|Adres e-mail|Nr telefonu|Kod pocztowy|Miejscowość|Kraj|Nazwa firmy|Wiadomość|ID dealera",
			"city=Miejscowość|company=Nazwa firmy|country=Kraj|email=Adres e-mail|first=Imię|last=Nazwisko|message=Wiadomość|organization=ID dealera|phone=Nr telefonu|postal=Kod pocztowy",
		},
		{
			"Swedish", "Förnamn|Efternamn|E-post|Mobilnummer|Gatuadress|Postnummer|Postort|Företag|Meddelande",
			"city=Postort|company=Företag|email=E-post|first=Förnamn|last=Efternamn|message=Meddelande|phone=Mobilnummer|postal=Postnummer|street=Gatuadress",
		},
		{
			"Danish", "Fornavn|Efternavn|E-mail|Telefonnummer|Postnr.|By|Land|Virksomhed|Besked|Forhandlernummer",
			"city=By|company=Virksomhed|country=Land|email=E-mail|first=Fornavn|last=Efternavn|message=Besked|organization=Forhandlernummer|phone=Telefonnummer|postal=Postnr.",
		},
		{"Norwegian", "Fornavn|Etternavn|E-postadresse|Telefonnummer|Poststed|Melding", "city=Poststed|email=E-postadresse|first=Fornavn|last=Etternavn|message=Melding|phone=Telefonnummer"},
		{
			"Russian", "ID|Статус|Имя|Отчество|Фамилия|Телефон клиента|Эл. почта|Город|Индекс|Улица|Компания|Комментарий|Источник|Дата создания|Ответственный|Код дилера",
			"city=Город|company=Компания|created=Дата создания|email=Эл. почта|first=Имя|key=ID|last=Фамилия|message=Комментарий|middle=Отчество|organization=Код дилера|phone=Телефон клиента|postal=Индекс|source=Источник|street=Улица",
		},
		{"Turkish", "Kayıt No|Adı|Soyadı|E-posta|Cep Telefonu|Şehir|Posta Kodu|Ülke|Şirket|Mesaj|Durum|Oluşturulma Tarihi|Bayi Kodu|Sorumlu", "city=Şehir|company=Şirket|country=Ülke|created=Oluşturulma Tarihi|email=E-posta|first=Adı|key=Kayıt No|last=Soyadı|message=Mesaj|organization=Bayi Kodu|phone=Cep Telefonu|postal=Posta Kodu"},
		{"Turkish provinces", "Ad Soyad|E-posta|İl|İlçe", "city=İlçe|email=E-posta|full=Ad Soyad|state=İl"},
		{"Japanese", "リードID|姓|名|メールアドレス|電話番号|携帯電話|会社名|役職|郵便番号|都道府県|市区町村|お問い合わせ内容|ステータス|作成日|担当者名|店舗コード", "city=市区町村|company=会社名|created=作成日|email=メールアドレス|first=名|full=担当者名|job=役職|key=リードID|last=姓|message=お問い合わせ内容|mobile=携帯電話|organization=店舗コード|phone=電話番号|postal=郵便番号|state=都道府県"},
		{"Chinese", "线索编号|姓名|手机号|电子邮箱|公司名称|职位|省份|城市|详细地址|邮编|来源|线索状态|创建时间|负责人|经销商代码|备注", "city=城市|company=公司名称|created=创建时间|email=电子邮箱|full=姓名|job=职位|key=线索编号|message=备注|organization=经销商代码|phone=手机号|postal=邮编|source=来源|state=省份|street=详细地址"},
		{"Chinese, traditional", "姓名|手機|電子郵件|公司名稱|郵遞區號|狀態|建立日期|備註", "company=公司名稱|created=建立日期|email=電子郵件|full=姓名|message=備註|phone=手機|postal=郵遞區號"},
		{"Korean", "리드번호|성명|휴대폰번호|이메일|회사명|직책|우편번호|주소|문의내용|진행상태|접수일|유입경로|대리점코드", "company=회사명|created=접수일|email=이메일|full=성명|job=직책|key=리드번호|message=문의내용|organization=대리점코드|phone=휴대폰번호|postal=우편번호|source=유입경로|street=주소"},
		{"Arabic", "المعرف|الاسم الأول|اسم العائلة|البريد الإلكتروني|رقم الجوال|المدينة|الدولة|الشركة|الرسالة|الحالة|تاريخ الإنشاء|المصدر|رمز الوكيل", "city=المدينة|company=الشركة|country=الدولة|created=تاريخ الإنشاء|email=البريد الإلكتروني|first=الاسم الأول|key=المعرف|last=اسم العائلة|message=الرسالة|organization=رمز الوكيل|phone=رقم الجوال|source=المصدر"},
		{
			"HubSpot API", "properties.hs_object_id|properties.firstname|properties.lastname|properties.email|properties.hubspot_owner_id",
			"email=properties.email|first=properties.firstname|key=properties.hs_object_id|last=properties.lastname",
		},
		{"nobody's", "Owner Email|Contact Date|Customer Ref|Account Owner|Dealer Phone|Campaign Name|Email Opt Out|Last Modified Date|Marital Status|Company Address|Form ID|user_id|Sales Rep", ""},
		{"second ones", "Work Phone 2|Other Email|Phone|Email", "email=Email|phone=Phone"},
	} {
		var want []string
		if test.want != "" {
			want = strings.Split(test.want, "|")
		}
		if diff := cmp.Diff(want, partsOf(strings.Split(test.headers, "|")...)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestStatusWords(t *testing.T) {
	for word, want := range map[string]string{
		"New": "open", "closedWon": "closedWon", "Closed | Won": "closedWon", "onHold": "onHold", "Contact Attempted": "contacted",
		"Closed | Bought Used": "closedBoughtUsed", "closedBoughtOtherBrand": "closedBoughtOtherBrand", "Closed | Not Interested": "closedNotInterested",
		"Open - Not Contacted": "open", "Working - Contacted": "inProgress", "Closed - Converted": "closedWon", "Closed - Not Converted": "closedNotInterested",
		"OPEN_DEAL": "inProgress", "ATTEMPTED_TO_CONTACT": "contacted", "BAD_TIMING": "onHold", "Nicht erreicht": "contacted", "Kein Interesse": "closedNotInterested",
		"Gewonnen": "closedWon", "Angebot versendet": "inProgress", "Wiedervorlage": "onHold", "Perdu - concurrence": "closedBoughtOtherBrand",
		"No contesta": "contacted", "Da contattare": "open", "Em andamento": "inProgress", "Niet geïnteresseerd": "closedNotInterested", "Sprzedane": "closedWon",
		"В работе": "inProgress", "Не обработан": "open", "Некачественный лид": "closedNotInterested", "Сделка успешна": "closedWon", "Отложен": "onHold", "Недозвон": "contacted",
		"Yeni": "open", "Arandı": "contacted", "Teklif gönderildi": "inProgress", "İlgilenmiyor": "closedNotInterested", "SATILDI": "closedWon", "Ertelendi": "onHold",
		"新規": "open", "未対応": "open", "連絡済み": "contacted", "商談中": "inProgress", "保留": "onHold", "受注": "closedWon", "失注": "closedNotInterested", "失注（競合）": "closedBoughtOtherBrand",
		"未联系": "open", "已联系": "contacted", "跟进中": "inProgress", "已成交": "closedWon", "无效线索": "closedNotInterested", "暂停": "onHold", "贏單": "closedWon",
		"신규": "open", "연락 완료": "contacted", "상담중": "inProgress", "보류": "onHold", "계약완료": "closedWon", "관심 없음": "closedNotInterested", "실패": "closedNotInterested",
		"جديد": "open", "تم الاتصال": "contacted", "قيد المعالجة": "inProgress", "مؤجل": "onHold", "تم البيع": "closedWon", "غير مهتم": "closedNotInterested",
		"Nowy": "open", "Nie odbiera": "contacted", "W trakcie": "inProgress", "Odrzucony": "closedNotInterested", "Hot": "", "Warm": "", "Cold": "",
		"Ej intresserad": "closedNotInterested", "Tabt": "closedNotInterested", "Not sold": "", "Closed": "", "5": "", "Phase B": "", "": "",
		"Lost to competitor": "closedBoughtOtherBrand", "Qualified - lost": "closedNotInterested", "Nicht verkauft": "",
	} {
		if got := placeStatus(word).part; got != part(want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// No phrase may stand for two statuses, or the order of the table would decide.
func TestStatusTableIsOfOneMind(t *testing.T) {
	first := map[string]string{}
	eachPhrase(known().Statuses, func(section, phrase string, words []string, _ sign) {
		if !slices.Contains(mapping.Statuses(), section) {
			t.Errorf("%q is no status", section)
		}
		text := strings.Join(words, " ")
		if other := first[text]; other != "" && other != section {
			t.Errorf("%q stands for %s and %s", phrase, other, section)
		}
		first[text] = section
	})
}

// fault 132
func TestALeadIsNoHeader(t *testing.T) {
	for _, test := range []struct {
		first, second string
		headless      bool
	}{
		{"ann@example.com,Ann,x", "bob@example.com,Bob,y", true},
		{"Ann,ann@example.com", "", true},
		{"1,Ann,617-555-0101,2026-01-02", "2,Bob,617-555-0102,2026-01-03", true},
		{"Ann,Lee,617-555-0101,L-77", "Bob,Ray,617-555-0102,L-78", true},
		{"id,email,phone", "1,ann@example.com,617-555-0101", false},
		{"Kennung,2024,2025", "A1,5,6", false},
		{"2024-01-01,2024-02-01,Name", "2024-01-05,2024-02-07,Ann", false},
		{"a,b,c", "1,2,3", false},
		{"1,english", "2,german\n3,french", true},
		{"1,english", "5,german\n3,french", false},
		{"Ann,Lee,617-555-0101,02134", "", true},
		{"Anrede,2024,2025", "", false},
		{"Ann,Lee,New,Bonn,Germany,x", "Bob,Ray,New,Bonn,France,y", true},
		{"1,Ann,617-555-0101,2026-01-02,Phone,x", "2,Bob,617-555-0102,2026-01-03,Web,y", true},
		{"id,contact@example.com's list", "1,x", false},
	} {
		in := Input{Source: mapping.Source{Format: "csv", Columns: strings.Split(test.first, ",")}}
		if test.second != "" {
			for line := range strings.SplitSeq(test.second, "\n") {
				in.Rows = append(in.Rows, strings.Split(line, ","))
			}
		}
		table := newTable(in)
		if table.Headless != test.headless {
			t.Errorf("%s: header taken for a lead: %v", test.first, table.Headless)
		}
		if rows := table.In.Rows; test.headless && (len(rows) != len(in.Rows)+1 || rows[0][0] != in.Columns[0] || table.In.Columns[0] != "col1") {
			t.Errorf("%s: columns %q, rows %q", test.first, table.In.Columns, rows)
		}
	}
}
