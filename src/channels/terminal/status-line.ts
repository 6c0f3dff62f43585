/** Shows one status line at a terminal with the current activity and the time, and erases it before any other output. */

import { escapeHidden } from '../../kit/escape.ts'
import { flat } from '../../kit/text.ts'
import { type Overlay, type Printed, printTo } from './printer.ts'

export type StatusLine = Overlay &
  Pick<StatusLineOptions, 'put' | 'columns'> & {
    /** Shows the line after 300 ms, and updates it every second from then on. It counts from `since`; an area has room for `facts` too. */
    begin(what: string, facts?: () => readonly string[], since?: number): void
    end(): void
    /** From now on the line is a row of this area, which is also erased in its place; without one it draws itself again. */
    attach(area?: StatusArea): void
    area(): StatusArea | undefined
  }

type StatusArea = Overlay & {
  readonly [how in 'set' | 'hold']: (part: 'working' | 'tail', rows: readonly Printed[]) => void
} & { columns(): number }

export type StatusLineOptions = {
  /** Writes to stderr without escaping. */
  readonly put: (text: string) => void
  readonly columns: () => number
  readonly now: () => number
}

const [patienceMs, tickMs] = [300, 1000]
/** Fits 20 columns, so that a terminal that becomes narrower never wraps it. */
const longest = 19

/** Draws nothing while the cursor is within a line, because an answer streams, a question is open, or the person types there. */
export function createStatusLine({ put, columns, now }: StatusLineOptions): StatusLine {
  const { write } = printTo(put, true)
  const state: {
    what?: string
    facts?: (() => readonly string[]) | undefined
    since: number
    drawn: boolean
    atStart: boolean
    timer?: ReturnType<typeof setTimeout>
    area?: StatusArea | undefined
  } = { since: 0, drawn: false, atStart: true }
  const erase = () => {
    if (state.area) return state.area.erase()
    if (!state.drawn) return
    state.drawn = false
    write([{ mark: 'eraseLine' }])
  }
  const draw = () => {
    if (state.what === undefined) return
    const seconds = Math.floor((now() - state.since) / 1000)
    if (state.area) {
      state.area.set('working', [
        [{ mark: 'dim' }, statusText(state.what, seconds, state.area.columns(), state.facts?.()), { mark: 'normal' }],
      ])
    } else if (state.atStart) {
      const words = statusText(state.what, seconds, Math.min(longest, columns() - 1))
      write([{ mark: 'eraseLine' }, { mark: 'dim' }, words, { mark: 'normal' }])
      state.drawn = true
    }
    state.timer = setTimeout(draw, tickMs - ((now() - state.since) % tickMs))
  }
  const end = () => {
    clearTimeout(state.timer)
    process.off('exit', erase)
    process.off('SIGWINCH', redraw)
    state.what = undefined
    if (state.area) state.area.set('working', [])
    else erase()
  }
  const redraw = () => {
    if (!state.drawn) return
    clearTimeout(state.timer)
    draw()
  }
  return {
    ...{ put, columns, erase },
    printed(text) {
      if (state.area) return state.area.printed(text)
      state.atStart = text.endsWith('\n')
    },
    begin(what, facts, since = now()) {
      end()
      Object.assign(state, { what, facts, since })
      process.once('exit', erase)
      process.on('SIGWINCH', redraw)
      state.timer = setTimeout(draw, patienceMs)
    },
    end,
    attach(area) {
      end()
      state.area = area
    },
    area: () => state.area,
  }
}

/** Formats `thinking 12 s` within the given columns; it keeps the time whole where there is room, and adds the facts that have room. */
export function statusText(what: string, seconds: number, columns: number, facts: readonly string[] = []): string {
  const time = seconds < 100 ? `${seconds} s` : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
  const text = cutTo(`${cutTo(flat(escapeHidden(what)), columns - time.length - 1)} ${time}`.trimStart(), columns)
  return facts.reduce((line, fact) => (Bun.stringWidth(`${line} · ${fact}`) > columns ? line : `${line} · ${fact}`), text)
}

/** Wide characters take two columns. */
export function cutTo(text: string, columns: number): string {
  if (Bun.stringWidth(text) <= columns) return text
  return columns < 1 ? '' : `${beginningOf(text, columns - 1)}…`
}

/** Returns the beginning of the text that fits into so many columns. */
export function beginningOf(text: string, columns: number): string {
  if (Bun.stringWidth(text) <= columns) return text
  const state = { text: '', width: 0 }
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    state.width += Bun.stringWidth(segment)
    if (state.width > columns) break
    state.text += segment
  }
  return state.text
}
