/** Turns the bytes of a terminal into keys, pastes and focus changes; what the terminal reports besides them never becomes text. */

export type KeyPress = {
  /** `text`, `paste`, `enter`, `newline`, `escape`, `tab`, `backspace`, `up`, `ctrl-a`, `alt-b`, `focus`, `blur`, … */
  readonly name: string
  /** Only `text` and `paste` have one. */
  readonly text?: string
}

/** A lone Esc, and the beginning of a report whose end never comes. */
const [loneMs, reportMs] = [50, 1000]
/** Second characters of the reports that end with BEL or ST: colours, titles, versions. */
const strings = ']P_^X'
const pasteEnd = '\u001b[201~'

const named: { readonly [code: string]: string } = { '\r': 'enter', '\n': 'enter', '\t': 'tab', '\b': 'backspace', '\u007f': 'backspace' }
/** The final characters of cursor keys, and the numbers of those that end in `~`. */
const finals: { readonly [final: string]: string } = {
  ...{ A: 'up', B: 'down', C: 'right', D: 'left', H: 'home', F: 'end', I: 'focus', O: 'blur', Z: 'shift-tab' },
}
const numbers: { readonly [number: string]: string } = { 1: 'home', 3: 'delete', 4: 'end', 7: 'home', 8: 'end' }

/** Returns a function that takes the next bytes and calls `press` for each key, perhaps later. */
export function createKeys(press: (key: KeyPress) => void): (bytes: Uint8Array) => void {
  const decoder = new TextDecoder()
  const state: {
    rest: string
    paste?: string[] | undefined
    afterReturn: boolean
    timer?: ReturnType<typeof setTimeout> | undefined
    ms: number
  } = { rest: '', afterReturn: false, ms: 0 }

  /** @returns false while the end of the paste has not come. */
  const paste = (pieces: string[]) => {
    const at = state.rest.indexOf(pasteEnd)
    const until = at < 0 ? Math.max(0, state.rest.length - pasteEnd.length + 1) : at
    pieces.push(state.rest.slice(0, until))
    state.rest = state.rest.slice(at < 0 ? until : at + pasteEnd.length)
    if (at < 0) return false
    state.paste = undefined
    press({ name: 'paste', text: pieces.join('').replace(/\r\n?/g, '\n') })
    return true
  }

  /** Takes one key off the rest. @returns false when its end has not come. */
  const take = (): boolean => {
    const { rest } = state
    if (state.paste) return paste(state.paste)
    const length = rest.startsWith('\u001b') ? sequenceLength(rest) : plainLength(rest)
    if (length === undefined) return false
    const code = rest.slice(0, length)
    state.rest = rest.slice(length)
    const isPair = code === '\n' && state.afterReturn
    state.afterReturn = code === '\r'
    if (code === '\u001b[200~') state.paste = []
    else if (!isPair) for (const key of keysOf(code)) press(key)
    return true
  }

  const stopTimer = () => {
    clearTimeout(state.timer)
    state.timer = undefined
  }

  const drain = () => {
    while (state.rest !== '' && take()) stopTimer()
    const ms = state.rest.length < 3 ? loneMs : reportMs
    if (state.rest === '' || state.paste || (state.timer && state.ms === ms)) return
    stopTimer()
    Object.assign(state, { ms, timer: setTimeout(giveUp, ms) })
  }

  /** Drops what began like a report; a lone Esc is a key. */
  const giveUp = () => {
    const { rest } = state
    Object.assign(state, { rest: '', timer: undefined })
    if (rest === '\u001b') press({ name: 'escape' })
  }

  return (bytes) => {
    state.rest += decoder.decode(bytes, { stream: true })
    drain()
  }
}

/** Everything up to the next control character is text. */
function plainLength(rest: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const at = rest.search(/[\u0000-\u001f\u007f-\u009f]/)
  return at === 0 ? 1 : at < 0 ? rest.length : at
}

/** @returns the length of the sequence at the beginning; undefined when its end has not come */
function sequenceLength(rest: string): number | undefined {
  const kind = rest[1]
  if (kind === undefined) return undefined
  if (kind === '\u001b') return 1
  if (strings.includes(kind)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    const found = /\u0007|\u001b\\|\u009c/.exec(rest.slice(2))
    return found ? 2 + found.index + found[0].length : undefined
  }
  if (kind === 'O') return rest.length < 3 ? undefined : 3
  if (kind !== '[') return (rest.codePointAt(1) ?? 0) > 0xffff ? 3 : 2
  if (rest[2] === 'M') return rest.length < 6 ? undefined : 6
  if (rest[2] === '[') return rest.length < 4 ? undefined : 4
  const whole = /^[0-?]*[ -/]*([@-~])?/.exec(rest.slice(2))
  const length = 2 + (whole?.[0].length ?? 0)
  if (whole?.[1] !== undefined) return length
  // Another character cannot belong to it.
  return length < rest.length ? length : undefined
}

function keysOf(code: string): readonly KeyPress[] {
  const name = named[code] ?? (code.startsWith('\u001b') ? sequenceName(code) : controlName(code))
  if (name !== undefined) return name === '' ? [] : [{ name }]
  return [{ name: 'text', text: code }]
}

/** @returns undefined for text, and the empty text for control characters without a meaning */
function controlName(code: string): string | undefined {
  const point = code.codePointAt(0) ?? 0
  if (point >= 1 && point <= 26) return `ctrl-${String.fromCharCode(point + 96)}`
  return point < 32 || (point >= 127 && point < 160) ? '' : undefined
}

/** @returns the empty text for reports, and for keys without a meaning */
function sequenceName(code: string): string {
  if (code.length === 1) return 'escape'
  if (code[1] === 'O') return finals[code[2] ?? ''] ?? ''
  if (strings.includes(code[1] ?? '')) return ''
  if (code[1] !== '[') {
    const key = named[code[1] ?? ''] ?? code[1]?.toLowerCase() ?? ''
    return key === 'enter' ? 'newline' : /^[!-~]+$/.test(key) ? `alt-${key}` : ''
  }
  const parsed = /^(\d*)(?:;(\d+))?(?:;(\d+))?([A-Za-z~])$/.exec(code.slice(2))
  if (parsed === null) return ''
  const [, number = '', modifier = '1', third, final = ''] = parsed
  // Shift-Enter and Alt-Enter of terminals that report them.
  if ((final === 'u' && number === '13') || (final === '~' && number === '27' && third === '13'))
    return modifier === '1' ? 'enter' : 'newline'
  const key = final === '~' ? numbers[number] : finals[final]
  if (key === undefined) return ''
  const bits = Number(modifier) - 1
  return `${bits & 4 ? 'ctrl-' : ''}${bits & 2 ? 'alt-' : ''}${key}`
}
