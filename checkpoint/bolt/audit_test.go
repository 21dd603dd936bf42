package bolt
