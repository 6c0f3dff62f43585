/** Runs the message editor of a terminal conversation in the live area; Ctrl-C cancels the running turn and Ctrl-D leaves. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd, attempt, errorText } from '../../../kit/errors.ts'
import { flat } from '../../../kit/text.ts'
import { runEditor } from '../approval-prompt.ts'
import { openDescriptor } from '../descriptor.ts'
import { type Printed, wantsColor, wordsOf } from '../printer.ts'
import type { StatusLine } from '../status-line.ts'
import { type Cell, createEditBuffer, foldedText, rowsOf } from './edit-buffer.ts'
import { historySize, keep, readHistory } from './history.ts'
import { createKeys, type KeyPress } from './keys.ts'
import type { Repl, ReplOptions } from './line-reader.ts'
import { createLiveArea, type LiveRow } from './live-area.ts'

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

type Receiver = (line: string | undefined) => void
type OpenQuestion = { readonly prompt: string; readonly draft: readonly Cell[]; readonly settle: Receiver }
type Queued = { readonly text: string; readonly shown: string; steered?: Promise<void> | undefined }

const prompt = '> '
/** Bracketed paste and focus reports. */
const [modesOn, modesOff] = ['\u001b[?2004h\u001b[?1004h', '\u001b[?1004l\u001b[?2004l']
/** So many rows of the queue, and of a list of completions, are shown. */
const longestList = 6

export function createScreen({ historyPath, printer, complete, env, redact, status, footer, steer, onKey }: ScreenOptions): Repl {
  const { put } = openDescriptor(1)
  const area = createLiveArea({ put, size: terminalSize })
  const buffer = createEditBuffer()
  const history = readHistory(historyPath)
  const dim = (words: string): LiveRow => (wantsColor(env) ? [{ mark: 'dim' }, words, { mark: 'normal' }] : words)
  const state: {
    busy: boolean
    closed: boolean
    interrupted: boolean
    interrupts: number
    focused: boolean
    /** Counts keys, so that a completion which arrives late is dropped. */
    keys: number
    queue: Queued[]
    hint: readonly string[]
    /** Where the shown entry stands in the history, and what was typed before. */
    recalled?: { at: number; readonly draft: readonly Cell[] } | undefined
    search?: { query: string; at: number } | undefined
    question?: OpenQuestion | undefined
    waiting?: ((queued: Queued | undefined) => void) | undefined
  } = { busy: false, closed: false, interrupted: false, interrupts: 0, focused: true, keys: 0, queue: [], hint: [] }

  function draw(): void {
    if (state.closed) return
    const columns = area.columns()
    const most = Math.max(1, Math.min(12, Math.floor(terminalSize()[1] / 2) || 12))
    const queue = state.queue.slice(-longestList).map(({ shown, steered }) => dim(`${steered ? 'next step' : 'queued'}: ${flat(shown)}`))
    const { rows, cursor } = inputRows(columns)
    const first = Math.max(0, Math.min(cursor.row - most + 1, rows.length - most), Math.min(cursor.row, rows.length - most))
    const seen = rows.slice(first, first + most)
    const place = { row: queue.length + cursor.row - first, column: cursor.column }
    area.set('input', [...queue, ...seen, ...state.hint.slice(0, longestList).map(dim)], place)
  }

  function inputRows(columns: number) {
    if (state.search === undefined) return buffer.rows(state.question?.prompt ?? prompt, columns)
    const words = `(search) ${state.search.query}: `
    const { rows } = rowsOf([...flat(history[state.search.at] ?? '')], 0, words, columns)
    return { rows: rows.slice(0, 3), cursor: { row: 0, column: Math.min(columns - 1, Bun.stringWidth(words) - 2) } }
  }

  const showFooter = () => area.set('footer', footer() === '' ? [] : [dim(footer())])
  const print = (cells: readonly Cell[] | string, before = prompt) => {
    const shown = typeof cells === 'string' ? cells : foldedText(cells)
    printer.write(`${before}${shown.replaceAll('\n', '\n  ')}\n`)
  }
  const remember = (text: string) => {
    const entry = text.trim()
    if (text.startsWith(' ') || entry === '' || redact(entry) === history.at(-1)) return
    history.push(redact(entry))
    if (history.length > historySize) history.shift()
    keep(historyPath, redact(entry))
  }

  function submit(): void {
    const { question } = state
    if (question === undefined && buffer.beforeCursor().endsWith('\\')) {
      buffer.edit('backspace')
      return void buffer.edit('newline')
    }
    const cells = buffer.take()
    state.recalled = undefined
    const text = cells.map((cell) => (typeof cell === 'string' ? cell : cell.paste)).join('')
    if (question) {
      print(cells, question.prompt)
      return void question.settle(text)
    }
    const queued: Queued = { text, shown: foldedText(cells) }
    if (state.waiting) state.waiting(queued)
    else if (text.trim() !== '') enqueue(queued)
  }

  /** While a turn runs, a message is also for it; what the model did not get in it is the next turn's. */
  function enqueue(queued: Queued): void {
    state.queue.push(queued)
    if (!state.busy || state.interrupted || /^[/!]|(?:^|[\s(])@\S/.test(queued.text)) return
    queued.steered = steer(queued.text.trim()).then((isTaken) => {
      queued.steered = undefined
      if (!state.queue.includes(queued)) return
      if (isTaken) {
        state.queue = state.queue.filter((each) => each !== queued)
        print(queued.shown)
        remember(queued.text)
      } else if (state.interrupted) recall()
      draw()
    })
  }

  /** Puts the queued messages back into the input. */
  function recall(): void {
    const back = state.queue.filter(({ steered }) => steered === undefined)
    state.queue = state.queue.filter(({ steered }) => steered !== undefined)
    const rest = buffer.take()
    buffer.replace(back.map(({ text }) => text).join('\n'))
    buffer.restore([...buffer.take(), ...(back.length > 0 && rest.length > 0 ? ['\n'] : []), ...rest])
  }

  function interrupt(): void {
    state.interrupted = true
    if (!state.question) recall()
    if (!process.emit('SIGINT')) state.question?.settle(undefined)
  }

  function ctrlC(): void {
    if (state.busy) return void interrupt()
    if (state.question) return void state.question.settle(undefined)
    const isTyping = !buffer.isEmpty()
    if (!isTyping && state.interrupts++ > 0) return void leave()
    print(buffer.take())
    state.recalled = undefined
    if (!isTyping) printer.write('(Ctrl-D or /exit leaves)\n')
  }

  /** Shows an older or newer message of the history; what was typed comes after the newest. */
  function recallHistory(by: -1 | 1): void {
    if (state.question) return
    const at = (state.recalled?.at ?? history.length) + by
    if (at < 0 || at > history.length || (by > 0 && !state.recalled)) return
    const draft = state.recalled?.draft ?? buffer.take()
    if (at === history.length) buffer.restore(draft)
    else buffer.replace(history[at] ?? '')
    state.recalled = at === history.length ? undefined : { at, draft }
  }

  /** @returns false when the key ends the search and has its usual meaning */
  function searchKey({ name, text = '' }: KeyPress): boolean {
    const search = state.search
    if (search === undefined) return false
    const find = (query: string, from: number) => {
      const at = history.findLastIndex((entry, index) => index <= from && entry.toLowerCase().includes(query.toLowerCase()))
      state.search = { query, at: at < 0 ? search.at : at }
    }
    if (name === 'text') find(search.query + text, search.at)
    else if (name === 'backspace') find(search.query.slice(0, -1), history.length)
    else if (name === 'ctrl-r') find(search.query, search.at - 1)
    else {
      state.search = undefined
      if (name === 'ctrl-c' || name === 'ctrl-g') return true
      if (history[search.at] !== undefined) buffer.replace(history[search.at] ?? '')
      return name === 'escape' || name === 'tab'
    }
    return true
  }

  async function completeWord(): Promise<void> {
    const [line, before, keys] = [buffer.text(), buffer.beforeCursor(), state.keys]
    const found = await complete(line, before.length)
    if (found === undefined || found.words.length === 0 || keys !== state.keys) return
    const { from, words } = found
    const [only] = words
    const word = words.length === 1 && only && !/[/ ]$/.test(only) ? `${only} ` : words.reduce(commonBeginning)
    const isFurther = word.length > before.length - from
    if (isFurther) buffer.replace(`${before.slice(0, from)}${word}${line.slice(before.length)}`, from + word.length)
    if (words.length > 1) state.hint = words
    draw()
  }

  /** Opens the message in the person's editor; whatever happens there, what was typed stays. */
  async function compose(): Promise<void> {
    const folder = attempt(() => mkdtempSync(join(tmpdir(), 'braidclaw-message-')))
    using _end = atEnd(() => folder && rmSync(folder, { recursive: true, force: true }))
    const file = join(folder ?? tmpdir(), 'message.md')
    try {
      writeFileSync(file, buffer.text(), { mode: 0o600, flag: 'wx' })
      const code = await edit([file])
      if (code === 0) buffer.replace(readFileSync(file, 'utf8').replace(/\n$/, ''))
      else printer.write(`the editor ended with ${code ?? 'a signal'}; the message is unchanged (EDITOR names another)\n`)
    } catch (error) {
      printer.write(`the editor could not be used (${errorText(error)}); the message is unchanged\n`)
    }
    draw()
  }

  const actions: { readonly [key: string]: () => unknown } = {
    enter: submit,
    escape: () => state.busy && !state.interrupted && interrupt(),
    tab: () => !state.question && completeWord(),
    up: () => buffer.moveLine(-1) || recallHistory(-1),
    down: () => buffer.moveLine(1) || recallHistory(1),
    'ctrl-p': () => recallHistory(-1),
    'ctrl-n': () => recallHistory(1),
    'ctrl-r': () => Object.assign(state, { search: state.question ? undefined : { query: '', at: history.length } }),
    'ctrl-g': () => !state.busy && !state.question && compose(),
    'ctrl-l': () => {
      area.pause()
      put('\u001b[H\u001b[2J')
      area.resume()
    },
    'ctrl-z': () => {
      suspend()
      process.kill(process.pid, 'SIGTSTP')
    },
    'ctrl-c': ctrlC,
    'ctrl-d': () => (buffer.isEmpty() ? leave() : buffer.edit('delete')),
  }

  function press(key: KeyPress): void {
    const { name, text = '' } = key
    if (state.closed) return
    if (name === 'focus' || name === 'blur') return void Object.assign(state, { focused: name === 'focus' })
    state.keys += 1
    state.hint = []
    if (!searchKey(key)) {
      if (name === 'text') buffer.insert(text)
      else if (name === 'paste') buffer.paste(text)
      else if (actions[name]) actions[name]?.()
      else if (!buffer.edit(name)) showOther(name)
    }
    draw()
  }

  function showOther(name: string): void {
    const shown = onKey?.(name)
    if (shown !== undefined) printer.write(shown)
  }

  function nextLine(): Promise<Queued | undefined> {
    const queued = state.queue.shift()
    draw()
    if (queued) print(queued.shown)
    if (queued || state.closed) return Promise.resolve(queued)
    return new Promise((resolve) => {
      state.waiting = (given) => {
        state.waiting = undefined
        if (given) print(given.shown)
        resolve(given)
      }
    })
  }

  async function run(take: (line: string) => Promise<'on' | 'exit'>, first?: string): Promise<void> {
    for (let line = first; ; line = undefined) {
      showFooter()
      draw()
      const text = line ?? (await nextLine())?.text
      if (text === undefined) return
      if (text.trim() === '') continue
      remember(text)
      Object.assign(state, { interrupts: 0, interrupted: false, busy: true })
      const next = await take(text.trim())
      await Promise.all(state.queue.map(({ steered }) => steered))
      state.busy = false
      if (next === 'exit') return
      if (!state.focused) put('\u0007')
    }
  }

  /** Only input typed after the question counts as its answer: what was typed before stays a message. */
  const ask = (question: Printed, signal?: AbortSignal): Promise<string | undefined> => {
    if (state.closed || signal?.aborted) return Promise.resolve(undefined)
    const last = wordsOf(question).replace(/^[\s\S]*\n/, '')
    printer.write(withoutEnd(question, last.length))
    if (!state.focused) put('\u0007')
    return new Promise((resolve) => {
      const settle: Receiver = (line) => {
        if (state.question?.settle !== settle) return
        signal?.removeEventListener('abort', takeBack)
        if (line === undefined) print(buffer.take(), last)
        buffer.restore(state.question.draft)
        state.question = undefined
        draw()
        resolve(line)
      }
      const takeBack = () => settle(undefined)
      state.question = { prompt: last, draft: buffer.take(), settle }
      signal?.addEventListener('abort', takeBack, { once: true })
      draw()
    })
  }

  async function edit(files: readonly string[]): Promise<number | undefined> {
    suspend()
    using _end = atEnd(resume)
    return await runEditor({ files, env })
  }

  function suspend(): void {
    area.pause()
    put(modesOff)
    process.stdin.pause()
    attempt(() => process.stdin.setRawMode(false))
  }

  /** Also after Ctrl-Z and fg. */
  function resume(): void {
    attempt(() => process.stdin.setRawMode(true))
    process.stdin.resume()
    put(modesOn)
    area.resume()
    draw()
  }

  /** The terminal is gone, or the person leaves: a turn that runs goes on to its end. */
  function leave(): void {
    if (state.closed) return
    state.closed = true
    state.question?.settle(undefined)
    state.waiting?.(undefined)
    area.set('input', [])
    area.set('footer', [])
  }

  function close(): void {
    leave()
    if (!process.off('SIGHUP', leave).listeners('exit').includes(close)) return
    process.off('exit', close).off('SIGCONT', resume)
    process.stdout.off('resize', draw)
    process.stdin.off('data', onData)
    status.attach()
    area.close()
    suspend()
  }

  const onData = createKeys(press)
  process.once('exit', close).on('SIGCONT', resume).once('SIGHUP', leave)
  process.stdout.on('resize', draw)
  process.stdin.on('data', onData).on('error', leave).on('end', leave)
  status.attach(area)
  resume()
  return { run, ask: Object.assign(ask, { edit }), close }
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
