package sandbox

import "slices"

// TrunkID is the ID of the trunk organization of the sandbox's made-up brand. It stands in the path
// of every create, and leads may be assigned to it directly.
const TrunkID = "b1cb1816-7d85-457c-9f32-2a1422d00e17"

// RadiusLocatorID, RegionsLocatorID and MixedLocatorID are the IDs of the brand's three locators, one of each type.
const (
	RadiusLocatorID  = "1946f580-3cae-445c-9069-80ba1f71f6fa"
	RegionsLocatorID = "3b7040a0-38d0-4604-a124-e839b9cbfb00"
	MixedLocatorID   = "93f69c0d-5bf3-4ee9-9997-15295147816b"
)

// Organizations are those of the made-up brand, the trunk first. They are the same in every sandbox that has no Directory of its own.
func Organizations() []Organization { return slices.Clone(organizations) }

// brand is the made-up brand.
var brand = newDirectory(TrunkID, organizations, map[string]string{
	RadiusLocatorID: radiusOnly, RegionsLocatorID: regionsAndTerritories, MixedLocatorID: regionsTerritoriesRadius,
}, locations)

const (
	boston       = "5bb7fb0f-d8d9-415b-8725-460b8ce504db"
	newYork      = "ce9c02e4-aafb-4062-97ff-bbaaeca05990"
	philadelphia = "0583542f-4cd5-413d-8c6e-3438c63be5a9"
	baltimore    = "e35fd989-b021-4ac8-8c31-76236de8809a"
	atlanta      = "dde53f64-b9a5-4b5f-b3c1-8c1b55270a2c"
	miami        = "2e432cd4-4edb-4a59-89e3-2949b3995201"
	chicago      = "8a1e6f91-0951-4549-a823-213cb38eb51c"
	stLouis      = "5fbd48da-8157-4056-9496-0b4de48e224b"
	dallas       = "1a306ce2-9f4a-4d58-afb7-fb492f5fca05"
	denver       = "db4b4019-d184-4f29-8669-d2723a604f08"
	losAngeles   = "233308a8-c720-4ded-8418-4a04f387583b"
	seattle      = "012e4e3f-a801-487e-9900-011f20c187c3"
)

var organizations = []Organization{
	{TrunkID, "Larkfield Motors"},
	{boston, "Harbor Larkfield"},
	{newYork, "Hudson Larkfield"},
	{philadelphia, "Keystone Larkfield"},
	{baltimore, "Chesapeake Larkfield"},
	{atlanta, "Peachtree Larkfield"},
	{miami, "Biscayne Larkfield"},
	{chicago, "Lakeshore Larkfield"},
	{stLouis, "Gateway Larkfield"},
	{dallas, "Lone Star Larkfield"},
	{denver, "Front Range Larkfield"},
	{losAngeles, "Golden State Larkfield"},
	{seattle, "Evergreen Larkfield"},
}

var locations = []location{
	{boston, "Larkfield of Boston", "Boston", "12 Cambridge Street, Boston, MA 02134", "02134", "020 021 022 023 024"},
	{boston, "Larkfield of Providence", "Providence", "48 Dorrance Street, Providence, RI 02903", "02903", "027 028 029"},
	{newYork, "Larkfield of Manhattan", "New York", "301 West 57th Street, New York, NY 10019", "10019", "10 11 12"},
	{newYork, "Larkfield of Newark", "Newark", "90 Halsey Street, Newark, NJ 07102", "07102", "07 08"},
	{philadelphia, "Larkfield of Philadelphia", "Philadelphia", "815 Arch Street, Philadelphia, PA 19107", "19107", "17 18 19"},
	{philadelphia, "Larkfield of Pittsburgh", "Pittsburgh", "220 Penn Avenue, Pittsburgh, PA 15222", "15222", "15 16"},
	{baltimore, "Larkfield of Baltimore", "Baltimore", "77 Light Street, Baltimore, MD 21201", "21201", "20 21"},
	{baltimore, "Larkfield of Richmond", "Richmond", "1400 Main Street, Richmond, VA 23219", "23219", "22 23"},
	{atlanta, "Larkfield of Atlanta", "Atlanta", "640 Ponce Avenue, Atlanta, GA 30308", "30308", "30 31"},
	{atlanta, "Larkfield of Charlotte", "Charlotte", "512 Tryon Street, Charlotte, NC 28202", "28202", "27 28 29"},
	{miami, "Larkfield of Miami", "Miami", "1010 Brickell Avenue, Miami, FL 33131", "33131", "33"},
	{miami, "Larkfield of Orlando", "Orlando", "25 Orange Avenue, Orlando, FL 32801", "32801", "32 34"},
	{chicago, "Larkfield of Chicago", "Chicago", "2200 Clark Street, Chicago, IL 60614", "60614", "60 61"},
	{chicago, "Larkfield of Milwaukee", "Milwaukee", "333 Water Street, Milwaukee, WI 53202", "53202", "53 54"},
	{stLouis, "Larkfield of St. Louis", "St. Louis", "1818 Market Street, St. Louis, MO 63103", "63103", "62 63"},
	{dallas, "Larkfield of Dallas", "Dallas", "700 Commerce Street, Dallas, TX 75201", "75201", "75 76"},
	{dallas, "Larkfield of Houston", "Houston", "909 Fannin Street, Houston, TX 77002", "77002", "77 78"},
	{denver, "Larkfield of Denver", "Denver", "1600 Blake Street, Denver, CO 80202", "80202", "80 81"},
	{losAngeles, "Larkfield of Los Angeles", "Los Angeles", "450 Spring Street, Los Angeles, CA 90012", "90012", "90 91"},
	{losAngeles, "Larkfield of San Diego", "San Diego", "60 Harbor Drive, San Diego, CA 92101", "92101", "92"},
	{losAngeles, "Larkfield of San Francisco", "San Francisco", "1355 Mission Street, San Francisco, CA 94103", "94103", "94 95"},
	{seattle, "Larkfield of Seattle", "Seattle", "501 Pike Street, Seattle, WA 98101", "98101", "98"},
	{seattle, "Larkfield of Portland", "Portland", "88 Burnside Street, Portland, OR 97204", "97204", "97"},
}
