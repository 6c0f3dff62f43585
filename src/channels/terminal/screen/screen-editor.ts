/** Runs the message editor of a terminal conversation in the live area; Ctrl-C cancels the running turn and Ctrl-D leaves. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd, attempt, errorText } from '../../../kit/errors.ts'
import { flat } from '../../../kit/text.ts'
import { runEditor } from '../approval-prompt.ts'
import { openDescriptor } from '../descriptor.ts'
import { type Printed, wantsColor, wordsOf } from '../printer.ts'
import { dimmed } from '../render.ts'
import type { StatusLine } from '../status-line.ts'
import { type Cell, createEditBuffer, type EditBuffer, foldedText, rowsOf, textOf } from './edit-buffer.ts'
import { historySize, keep, readHistory } from './history.ts'
import { createKeys, type KeyPress } from './keys.ts'
import type { Repl, ReplOptions } from './line-reader.ts'
import { createLiveArea, type LiveArea } from './live-area.ts'

/** Completes the word that ends at the cursor. `words` replace the text from `from` to the cursor. */
export type Completer = (line: string, cursor: number) => Promise<{ readonly from: number; readonly words: readonly string[] } | undefined>

export type ScreenOptions = ReplOptions & {
  readonly complete: Completer
  readonly status: Pick<StatusLine, 'attach'>
  readonly footer: () => string
  /** Gives a message to the turn that runs. Resolves with true when the model gets it, with false when the turn has ended without it. */
  readonly steer: (text: string) => Promise<boolean>
  /** Returns what another key shows, such as Ctrl-O. */
  readonly onKey?: (key: string) => Printed | undefined
}

type Queued = { readonly text: string; readonly shown: string; steered?: Promise<void> | undefined }

/** Holds what the functions of the editor share. */
type Screen = ScreenOptions & {
  readonly put: (text: string) => void
  readonly area: LiveArea
  readonly buffer: EditBuffer
  readonly history: string[]
  busy: boolean
  closed: boolean
  interrupted: boolean
  /** Ctrl-G was pressed while something worked. */
  editorWaits: boolean
  interrupts: number
  focused: boolean
  /** Counts keys, so that a completion which arrives late is dropped. */
  keys: number
  queue: Queued[]
  hint: readonly string[]
  /** Where the shown entry stands in the history, and what was typed before. */
  recalled?: { at: number; readonly draft: readonly Cell[] } | undefined
  search?: { query: string; at: number } | undefined
  question?: { readonly prompt: string; readonly draft: readonly Cell[]; readonly settle: (line: string | undefined) => void } | undefined
  waiting?: ((queued: Queued | undefined) => void) | undefined
}

const prompt = '> '
/** Bracketed paste and focus reports. */
const [modesOn, modesOff] = ['\u001b[?2004h\u001b[?1004h', '\u001b[?1004l\u001b[?2004l']
/** So many rows of the queue, and of a list of completions, are shown. */
const longestList = 6

export function createScreen(options: ScreenOptions): Repl {
  const { put } = openDescriptor(1)
  const screen: Screen = {
    ...options,
    ...{ put, area: createLiveArea({ put, size: terminalSize }), buffer: createEditBuffer(), history: readHistory(options.historyPath) },
    ...{ busy: false, closed: false, interrupted: false, editorWaits: false, interrupts: 0, focused: true, keys: 0, queue: [], hint: [] },
  }
  const redraw = () => draw(screen)
  const goOn = () => resume(screen)
  const left = () => leave(screen)
  const onData = createKeys((key) => press(screen, key))
  function close(): void {
    left()
    if (!process.off('SIGHUP', left).listeners('exit').includes(close)) return
    process.off('exit', close).off('SIGCONT', goOn)
    process.stdout.off('resize', redraw)
    process.stdin.off('data', onData)
    options.status.attach()
    screen.area.close()
    suspend(screen)
  }
  process.once('exit', close).on('SIGCONT', goOn).once('SIGHUP', left)
  process.stdout.on('resize', redraw)
  process.stdin.on('data', onData).on('error', left).on('end', left)
  options.status.attach(screen.area)
  goOn()
  const edit: Repl['ask']['edit'] = (files) => editWith(screen, files)
  return { run: (take, first) => run(screen, take, first), ask: Object.assign(askIn(screen), { edit }), close }
}

function draw(screen: Screen): void {
  const { area, buffer, env, queue, question } = screen
  if (screen.closed) return
  const columns = area.columns()
  const most = Math.max(1, Math.min(12, Math.floor(terminalSize()[1] / 2) || 12))
  const dim = (words: string) => dimmed(words, wantsColor(env))
  const waiting = queue.slice(-longestList).map(({ shown, steered }) => dim(`${steered ? 'next step' : 'queued'}: ${flat(shown)}`))
  const { rows, cursor } = screen.search ? searchRows(screen, screen.search, columns) : buffer.rows(question?.prompt ?? prompt, columns)
  const first = Math.max(0, Math.min(cursor.row, rows.length - most))
  const place = { row: waiting.length + cursor.row - first, column: cursor.column }
  area.set('input', [...waiting, ...rows.slice(first, first + most), ...screen.hint.slice(0, longestList).map(dim)], place)
}

function searchRows({ history }: Screen, { query, at }: NonNullable<Screen['search']>, columns: number) {
  const words = `(search) ${query}: `
  const { rows } = rowsOf([...flat(history[at] ?? '')], 0, words, columns)
  return { rows: rows.slice(0, 3), cursor: { row: 0, column: Math.min(columns - 1, Bun.stringWidth(words) - 2) } }
}

function print({ printer }: Screen, shown: string, before = prompt): void {
  printer.write(`${before}${shown.replaceAll('\n', '\n  ')}\n`)
}

function remember({ history, historyPath, redact }: Screen, text: string): void {
  const entry = text.trim()
  if (text.startsWith(' ') || entry === '' || redact(entry) === history.at(-1)) return
  history.push(redact(entry))
  if (history.length > historySize) history.shift()
  keep(historyPath, redact(entry))
}

function submit(screen: Screen): void {
  const { question, buffer } = screen
  if (question === undefined && buffer.beforeCursor().endsWith('\\')) {
    buffer.edit('backspace')
    return void buffer.edit('newline')
  }
  const cells = buffer.take()
  screen.recalled = undefined
  const [text, shown] = [textOf(cells), foldedText(cells)]
  if (question) {
    print(screen, shown, question.prompt)
    question.settle(text)
  } else if (screen.waiting) screen.waiting({ text, shown })
  else if (text.trim() !== '') enqueue(screen, { text, shown })
}

/** While a turn runs, a message is also for it; what the model did not get in it is the next turn's. */
function enqueue(screen: Screen, queued: Queued): void {
  screen.editorWaits = false
  screen.queue.push(queued)
  if (!screen.busy || screen.interrupted || /^[/!]|(?:^|[\s(])@\S/.test(queued.text)) return
  queued.steered = screen.steer(queued.text.trim()).then((isTaken) => {
    queued.steered = undefined
    if (!screen.queue.includes(queued)) return
    if (isTaken) {
      screen.queue = screen.queue.filter((each) => each !== queued)
      print(screen, queued.shown)
      remember(screen, queued.text)
    } else if (screen.interrupted) recall(screen)
    draw(screen)
  })
}

/** Puts the queued messages back into the input. */
function recall(screen: Screen): void {
  const { buffer, queue } = screen
  const back = queue.filter(({ steered }) => steered === undefined)
  screen.queue = queue.filter(({ steered }) => steered !== undefined)
  const rest = buffer.take()
  buffer.replace(back.map(({ text }) => text).join('\n'))
  buffer.restore([...buffer.take(), ...(back.length > 0 && rest.length > 0 ? ['\n'] : []), ...rest])
}

function interrupt(screen: Screen): void {
  screen.interrupted = true
  if (!screen.question) recall(screen)
  if (!process.emit('SIGINT')) screen.question?.settle(undefined)
}

function ctrlC(screen: Screen): void {
  const { buffer, printer, question } = screen
  if (screen.busy) return void interrupt(screen)
  if (question) return void question.settle(undefined)
  const isTyping = !buffer.isEmpty()
  if (!isTyping && screen.interrupts++ > 0) return void leave(screen)
  print(screen, foldedText(buffer.take()))
  screen.recalled = undefined
  if (!isTyping) printer.write('(Ctrl-D or /exit leaves)\n')
}

/** Shows an older or newer message of the history; what was typed comes after the newest. */
function recallHistory(screen: Screen, by: -1 | 1): void {
  const { buffer, history, question, recalled } = screen
  const at = (recalled?.at ?? history.length) + by
  if (question || at < 0 || at > history.length || (by > 0 && !recalled)) return
  const draft = recalled?.draft ?? buffer.take()
  if (at === history.length) buffer.restore(draft)
  else buffer.replace(history[at] ?? '')
  screen.recalled = at === history.length ? undefined : { at, draft }
}

/** @returns false when the key ends the search and has its usual meaning */
function searchKey(screen: Screen, { name, text = '' }: KeyPress): boolean {
  const { buffer, history, search } = screen
  if (search === undefined) return false
  const find = (query: string, from: number) => {
    const at = history.findLastIndex((entry, index) => index <= from && entry.toLowerCase().includes(query.toLowerCase()))
    screen.search = { query, at: at < 0 ? search.at : at }
  }
  if (name === 'text') find(search.query + text, search.at)
  else if (name === 'backspace') find(search.query.slice(0, -1), history.length)
  else if (name === 'ctrl-r') find(search.query, search.at - 1)
  else {
    screen.search = undefined
    if (name === 'ctrl-c' || name === 'ctrl-g') return true
    const entry = history[search.at]
    if (entry !== undefined) buffer.replace(entry)
    return name === 'escape' || name === 'tab'
  }
  return true
}

async function completeWord(screen: Screen): Promise<void> {
  const { buffer, keys } = screen
  const [line, before] = [buffer.text(), buffer.beforeCursor()]
  const { from = 0, words = [] } = (await screen.complete(line, before.length)) ?? {}
  if (words.length === 0 || keys !== screen.keys) return
  const [only] = words
  const word = words.length === 1 && only && !/[/ ]$/.test(only) ? `${only} ` : words.reduce(commonBeginning)
  const isFurther = word.length > before.length - from
  if (isFurther) buffer.replace(`${before.slice(0, from)}${word}${line.slice(before.length)}`, from + word.length)
  if (words.length > 1) screen.hint = words
  draw(screen)
}

/** Opens the message in the person's editor, when nothing works; whatever happens there, what was typed stays. */
async function compose(screen: Screen): Promise<void> {
  const { buffer, busy, printer } = screen
  Object.assign(screen, { editorWaits: busy, hint: busy ? ['the editor opens when the turn has ended'] : [] })
  if (busy) return
  try {
    const folder = mkdtempSync(join(tmpdir(), 'braidclaw-message-'))
    using _end = atEnd(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'message.md')
    writeFileSync(file, buffer.text(), { mode: 0o600, flag: 'wx' })
    const code = await editWith(screen, [file])
    if (code === 0) buffer.replace(readFileSync(file, 'utf8').replace(/\n$/, ''))
    else printer.write(`the editor ended with ${code ?? 'a signal'}; the message is unchanged (EDITOR names another)\n`)
  } catch (error) {
    printer.write(`the editor could not be used (${errorText(error)}); the message is unchanged\n`)
  }
  draw(screen)
}

const actions: { readonly [key: string]: (screen: Screen) => unknown } = {
  enter: submit,
  escape: (screen) => screen.busy && !screen.interrupted && interrupt(screen),
  tab: (screen) => !screen.question && completeWord(screen),
  up: (screen) => screen.buffer.moveLine(-1) || recallHistory(screen, -1),
  down: (screen) => screen.buffer.moveLine(1) || recallHistory(screen, 1),
  'ctrl-p': (screen) => recallHistory(screen, -1),
  'ctrl-n': (screen) => recallHistory(screen, 1),
  'ctrl-r': (screen) => Object.assign(screen, { search: screen.question ? undefined : { query: '', at: screen.history.length } }),
  'ctrl-g': (screen) => (screen.busy || !screen.question) && compose(screen),
  'ctrl-l': ({ area, put }) => {
    area.pause()
    put('\u001b[H\u001b[2J')
    area.resume()
  },
  'ctrl-z': (screen) => {
    suspend(screen)
    process.kill(process.pid, 'SIGTSTP')
  },
  'ctrl-c': ctrlC,
  'ctrl-d': (screen) => (screen.buffer.isEmpty() ? leave(screen) : screen.buffer.edit('delete')),
}

function press(screen: Screen, key: KeyPress): void {
  const { buffer, closed, printer, onKey } = screen
  const { name, text = '' } = key
  if (closed) return
  if (name === 'focus' || name === 'blur') return void Object.assign(screen, { focused: name === 'focus' })
  screen.keys += 1
  screen.hint = []
  if (!searchKey(screen, key)) {
    if (name === 'text') buffer.insert(text)
    else if (name === 'paste') buffer.paste(text)
    else if (actions[name]) actions[name]?.(screen)
    else if (!buffer.edit(name)) {
      const shown = onKey?.(name)
      if (shown !== undefined) printer.write(shown)
    }
  }
  draw(screen)
}

function nextLine(screen: Screen): Promise<Queued | undefined> {
  const queued = screen.queue.shift()
  draw(screen)
  if (queued) print(screen, queued.shown)
  if (queued || screen.closed) return Promise.resolve(queued)
  return new Promise((resolve) => {
    screen.waiting = (given) => {
      screen.waiting = undefined
      if (given) print(screen, given.shown)
      resolve(given)
    }
  })
}

async function run(screen: Screen, take: (line: string) => Promise<'on' | 'exit'>, first?: string): Promise<void> {
  const { area, env, footer } = screen
  for (let line = first; ; line = undefined) {
    area.set('footer', footer() === '' ? [] : [dimmed(footer(), wantsColor(env))])
    draw(screen)
    const text = line ?? (await nextLine(screen))?.text
    if (text === undefined) return
    if (text.trim() === '') continue
    remember(screen, text)
    Object.assign(screen, { interrupts: 0, interrupted: false, busy: true })
    const next = await take(text.trim())
    await Promise.all(screen.queue.map(({ steered }) => steered))
    screen.busy = false
    if (next === 'exit') return
    callBack(screen, 'the turn has ended')
    if (screen.editorWaits && !screen.closed) await compose(screen)
  }
}

/** Terminals that show the text of OSC 9 as a notice. Windows Terminal takes other commands by that number. */
const noticing = /^(?:iTerm\.app|WezTerm|ghostty|xterm-ghostty|xterm-kitty|foot(?:-extra)?)$/i

/** Calls the person who looks elsewhere. Within tmux and screen the environment may name another terminal, so that only the bell rings. */
function callBack({ focused, put, env: { TERM = '', TERM_PROGRAM = TERM, TMUX, STY } }: Screen, why: string): void {
  const isKnown = !TMUX && !STY && [TERM, TERM_PROGRAM].some((name) => noticing.test(name))
  if (!focused) put(`${isKnown ? `\u001b]9;BraidClaw: ${why}\u0007` : ''}\u0007`)
}

/** Only input typed after the question counts as its answer: what was typed before stays a message. */
function askIn(screen: Screen): (question: Printed, signal?: AbortSignal) => Promise<string | undefined> {
  const { buffer, printer } = screen
  return (question, signal) => {
    if (screen.closed || signal?.aborted) return Promise.resolve(undefined)
    const last = wordsOf(question).replace(/^[\s\S]*\n/, '')
    printer.write(withoutEnd(question, last.length))
    callBack(screen, 'a question waits for you')
    return new Promise((resolve) => {
      const settle = (line: string | undefined) => {
        if (screen.question?.settle !== settle) return
        signal?.removeEventListener('abort', takeBack)
        if (line === undefined) print(screen, foldedText(buffer.take()), last)
        buffer.restore(screen.question.draft)
        screen.question = undefined
        draw(screen)
        resolve(line)
      }
      const takeBack = () => settle(undefined)
      screen.question = { prompt: last, draft: buffer.take(), settle }
      signal?.addEventListener('abort', takeBack, { once: true })
      draw(screen)
    })
  }
}

async function editWith(screen: Screen, files: readonly string[]): Promise<number | undefined> {
  suspend(screen)
  using _end = atEnd(() => resume(screen))
  return await runEditor({ files, env: screen.env })
}

function suspend({ area, put }: Screen): void {
  area.pause()
  put(modesOff)
  process.stdin.pause()
  attempt(() => process.stdin.setRawMode(false))
}

/** Also after Ctrl-Z and fg. */
function resume(screen: Screen): void {
  attempt(() => process.stdin.setRawMode(true))
  process.stdin.resume()
  screen.put(modesOn)
  screen.area.resume()
  draw(screen)
}

/** The terminal is gone, or the person leaves: a turn that runs goes on to its end. */
function leave(screen: Screen): void {
  if (screen.closed) return
  screen.closed = true
  screen.question?.settle(undefined)
  screen.waiting?.(undefined)
  screen.area.set('input', [])
  screen.area.set('footer', [])
}

/** Asks the system each time: the terminal may have another size before its signal arrives. */
function terminalSize(): readonly [columns: number, rows: number] {
  const out: { columns?: number; rows?: number; _refreshSize?(): void } = process.stdout
  attempt(() => out._refreshSize?.())
  return [out.columns ?? 0, out.rows ?? 0]
}

function commonBeginning(left: string, right: string): string {
  const end = left.split('').findIndex((each, at) => each !== right[at])
  return end < 0 ? left : left.slice(0, end)
}

function withoutEnd(text: Printed, length: number): Printed {
  if (typeof text === 'string') return text.slice(0, text.length - length)
  const at = text.findLastIndex((piece) => typeof piece === 'string')
  return text.map((piece, index) => (index === at && typeof piece === 'string' ? piece.slice(0, piece.length - length) : piece))
}
