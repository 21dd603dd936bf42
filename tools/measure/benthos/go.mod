module benthos

go 1.25.2

require github.com/redpanda-data/benthos/v4 v4.60.0
