/** Makes the log of a runner safe to show: only text, newlines and a few colours get through, everything else is shown escaped. */

/** Is a text, which the printer has to escape, or a colour or weight by its name in the printer. */
export type LogPiece = string | { readonly mark: 'bold' | 'dim' | 'normal' | 'red' | 'green' | 'cyan' | 'uncoloured' }

export type LogFilter = {
  /** Holds back a colour sequence that the next piece may complete. */
  push(text: string): readonly LogPiece[]
}

/** Matches SGR, the one kind of escape sequence that only changes how text looks. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const colour = /(\u001b\[[0-9;:]{0,32}m)/
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const begun = /\u001b(?:\[[0-9;:]{0,32})?$/

type Mark = Exclude<LogPiece, string>['mark']

/** Lists what gets through. Concealed and blinking text, backgrounds and other colours have no entry, because they could hide text. */
const marks: { readonly [parameter: string]: readonly Mark[] } = {
  '': ['normal', 'uncoloured'],
  '0': ['normal', 'uncoloured'],
  '1': ['bold'],
  '2': ['dim'],
  '22': ['normal'],
  '31': ['red'],
  '32': ['green'],
  '36': ['cyan'],
  '39': ['uncoloured'],
  '91': ['red'],
  '92': ['green'],
  '96': ['cyan'],
}

export function createLogFilter(): LogFilter {
  const state = { held: '' }
  return {
    push(text) {
      const whole = state.held + text
      state.held = begun.exec(whole)?.[0] ?? ''
      const ready = whole.slice(0, whole.length - state.held.length)
      return ready.split(colour).flatMap((part, at) => (at % 2 === 1 ? marksIn(part) : textIn(part)))
    },
  }
}

function marksIn(sequence: string): LogPiece[] {
  const parameters = sequence.slice(2, -1).split(';')
  // 38 and 48 take the parameters after them: a colour out of many, which is left out.
  const extended = parameters.findIndex((parameter) => /^[34]8/.test(parameter))
  const plain = extended < 0 ? parameters : parameters.slice(0, extended)
  return plain.flatMap((parameter) => (marks[parameter] ?? []).map((mark) => ({ mark })))
}

/** Makes each state of a progress bar, which returns to the beginning of its line again and again, a line. */
function textIn(part: string): LogPiece[] {
  return part === '' ? [] : [part.replaceAll(/\r+\n/g, '\n').replaceAll('\r', '\n')]
}
