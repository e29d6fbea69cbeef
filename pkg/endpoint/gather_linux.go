package endpoint

const gathers = true
