/** The floor of a start: prints a version and ends. */

console.log('0.0.0')
