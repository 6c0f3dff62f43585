/** Shows one status line at a terminal with the current activity and its duration, and erases it before any other output. */

import { escapeHidden } from '../../kit/escape.ts'
import { flat } from '../../kit/text.ts'
import { type Overlay, printTo } from './printer.ts'

export type StatusLine = Overlay & {
  /** Shows the line after 300 ms, and updates it every second from then on. */
  begin(what: string): void
  end(): void
}

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
  const state: { what?: string; since: number; drawn: boolean; atStart: boolean; timer?: ReturnType<typeof setTimeout> } = {
    since: 0,
    drawn: false,
    atStart: true,
  }
  const erase = () => {
    if (!state.drawn) return
    state.drawn = false
    write([{ mark: 'eraseLine' }])
  }
  const draw = () => {
    if (state.what === undefined) return
    if (state.atStart) {
      const words = statusText(state.what, Math.floor((now() - state.since) / 1000), Math.min(longest, columns() - 1))
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
    erase()
  }
  const redraw = () => {
    if (!state.drawn) return
    clearTimeout(state.timer)
    draw()
  }
  return {
    erase,
    printed(text) {
      state.atStart = text.endsWith('\n')
    },
    begin(what) {
      end()
      Object.assign(state, { what, since: now() })
      process.once('exit', erase)
      process.on('SIGWINCH', redraw)
      state.timer = setTimeout(draw, patienceMs)
    },
    end,
  }
}

/** Formats `thinking 12 s` within the given columns; it keeps the time whole where there is room. */
export function statusText(what: string, seconds: number, columns: number): string {
  const time = seconds < 100 ? `${seconds} s` : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
  return cutTo(`${cutTo(flat(escapeHidden(what)), columns - time.length - 1)} ${time}`.trimStart(), columns)
}

/** Wide characters take two columns. */
function cutTo(text: string, columns: number): string {
  if (Bun.stringWidth(text) <= columns) return text
  const segments: string[] = []
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (Bun.stringWidth(`${segments.join('')}${segment}…`) > columns) break
    segments.push(segment)
  }
  return columns < 1 ? '' : `${segments.join('')}…`
}
