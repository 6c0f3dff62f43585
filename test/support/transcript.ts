/** Reads what a conversation wrote to a terminal as a person reads it: each text once, in the order in which it appeared. */

/** A draw of the live rows, or an erase of them, after which something is printed. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const draws = /\u001b\[\?2026h(?:(?!\u001b\[\?2026h)[\s\S])*?\u001b\[\?2026l/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const erases = /\u001b\[\?2026h(?:\u001b\[\d+A)?\r\u001b\[K(?:\u001b\[B\r\u001b\[J\u001b\[A)?(?:\u001b\[A\u001b\[\d+G)?|\u001b\[\?2026l/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const moves = /\u001b\[\d*[AB]|\u001b\[\?2026[hl]|\u001b\[[JK]|\u001b\[\d+G|\r/g

/**
 * A row that grew appears as what was added to it, and a printed line that was a row before does not appear again. The rows below the
 * cursor are left out. Without live rows the text is returned as it is. `prompt` is the empty prompt that waits below it.
 */
export function transcript(raw: string): { readonly text: string; readonly prompt: string } {
  const state = { text: '', rows: [] as readonly string[], from: 0, isRow: false }
  const print = (text: string) => {
    for (const line of text.replaceAll(erases, '').split(/(?<=\n)/)) {
      const words = line.replace(/\r?\n$/, '')
      if (line === '') continue
      if (words !== '' && state.rows.includes(words)) state.text += line.slice(words.length)
      else state.text += `${state.isRow && !state.text.endsWith('\n') && words !== '' ? '\n' : ''}${line}`
      state.isRow = false
    }
  }
  for (const found of raw.matchAll(draws)) {
    print(raw.slice(state.from, found.index))
    state.from = found.index + found[0].length
    const rows = rowsAbove(found[0])
    for (const row of rows) {
      if (state.rows.includes(row)) continue
      state.isRow = true
      const before = state.rows.filter((each) => each !== '' && row.startsWith(each)).sort((a, b) => b.length - a.length)[0]
      // What was printed since the prompt was drawn stands between the two.
      const isApart = row.startsWith('> ') && !state.text.endsWith(before ?? '')
      state.text +=
        before === undefined || isApart ? `${state.text === '' || state.text.endsWith('\n') ? '' : '\n'}${row}` : row.slice(before.length)
    }
    state.rows = rows
  }
  print(raw.slice(state.from))
  return { text: state.text, prompt: state.rows.at(-1) === '> ' && state.text.endsWith('\n') ? '> ' : '' }
}

function rowsAbove(draw: string): readonly string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const below = Number(/\u001b\[(\d+)A\u001b\[\d+G\u001b\[\?2026l$/.exec(draw)?.[1] ?? 0)
  const rows = draw.replaceAll(moves, '').split('\n')
  return rows.slice(0, rows.length - below).filter((row) => row !== '')
}
