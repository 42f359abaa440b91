// Package spelling measures how far a name is from another, for errors that say
// which known name was probably meant. It knows no names itself.
package spelling

// Distance is the Levenshtein distance of a and b, in bytes. It takes time
// O(len(a) × len(b)): callers bound what strangers may have compared.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
