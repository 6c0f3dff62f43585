/** What most names and questions are, told without a pattern: making the first ones ready costs 50 µs each where a turn is cold. */

/** On one line: white space, however much of it, is one space. */
export function flat(text: string): string {
  return isPlain(text) && !text.includes('  ') ? text : text.replace(/\s+/g, ' ')
}

/** Whether every character of it is one of these. */
export function isMadeOf(text: string, characters: string): boolean {
  for (let at = 0; at < text.length; at++) if (!characters.includes(text[at] ?? '')) return false
  return true
}

/** Whether it is a short text (300 characters) of printable ASCII alone. False tells nothing of a longer one. */
export function isPlain(text: string): boolean {
  if (text.length > 300) return false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 32 || code > 126) return false
  }
  return true
}
