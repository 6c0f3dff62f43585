/** Runs the pure router as a program of its own on Bun or Node, never imported: soul, history, tools and compaction only. */

import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { Json } from './kit/json.ts'
import { parseJson } from './kit/json.ts'
import type { Line } from './kit/lines.ts'
import { createFifoLines } from './kit/lines.ts'
import {
  type BrainReply,
  callLine,
  DISCOVERY,
  escapeText,
  fieldsOf,
  jsonLine,
  readMessage,
  readReply,
  readTools,
  type ToolUse,
} from './kit/wire.ts'
import { seedModel } from './providers/fifo/seed-model.ts'
import { createDuplex } from './service/fifo/duplex.ts'
import { claim, ensureFifos } from './service/fifo/fifo-folder.ts'
import { openPipe, READER } from './service/fifo/open-pipe.ts'

const SOUL = 'You are a helpful personal assistant.'
const COMPACT =
  'You are a memory compaction assistant. Summarize the following conversation, preserving: key facts about the user, their preferences, decisions made, ongoing projects, and important context. Be concise but complete. Output only the summary, no preamble.'
/** The most requests to the brain for one message. */
const TOOL_ROUNDS = 20
/** The limit for a message, and for an answer of the brain or the claw. */
const MAX_BYTES = 4_194_304
/** How long the claw may take to list its tools, for each of the two request names; without a list the brain gets no tools. */
const LIST_MS = 1000

type Ask = (text: string, timeoutMs?: number) => string | undefined
type Think = (payload: object) => BrainReply
type Said = { readonly role: string; readonly content: string }
type Prompt = { readonly system: string; readonly messages: unknown[] }
type Memory = { prompt(text: string): Prompt; append(question: string, answer: string): void; compact(max: number, think: Think): void }

const { env } = process
const fifos = env.PLANCKCLAW_FIFOS || '/tmp/planckclaw'
if (env.PLANCK_LEAN) main()
else begin(process).then(main)

/**
 * On Bun the process re-executes itself in a leaner mode, because Bun's machine-code compilers would cost 10 MB without any gain here; the
 * new process finds its FIFOs already created.
 */
async function begin({ argv, execArgv, execPath, versions, execve }: typeof process): Promise<void> {
  const trouble = await ensureFifos(fifos)
  if (trouble) fail(trouble)
  const lean = { ...env, BUN_JSC_useJIT: '0', MIMALLOC_PURGE_DELAY: '0', PLANCK_LEAN: '1' }
  if (versions.bun) execve?.(execPath, [execPath, ...execArgv, ...argv.slice(1)], lean)
}

/** Never returns. */
function main(): void {
  const [max, keep] = [count('HISTORY_MAX', '200'), count('HISTORY_KEEP', '40')]
  if (keep >= max) fail('HISTORY_KEEP must be less than HISTORY_MAX')
  if (!claim(fifos)) fail(`another agent serves ${fifos}; end that agent first`)
  const memory = openMemory(env.PLANCKCLAW_DIR || './memory', keep)
  const timeoutMs = count('PLANCKCLAW_TIMEOUT', '300') * 1000
  const [brain, claw] = [openAsk('brain', timeoutMs), openAsk('claw', timeoutMs)]
  const model = env.PLANCKCLAW_MODEL || seedModel
  const words = [...DISCOVERY]
  /** The first message waits up to 30 s for a claw that starts late. */
  let lists = Math.min(30, timeoutMs / LIST_MS)

  function think(payload: object): BrainReply {
    const answer = brain(`${jsonLine({ model, ...payload })}\n`) ?? '{"error":1}'
    const reply = readReply(answer)
    if (reply.error) tell(`brain: ${answer.slice(0, 500)}`)
    return reply
  }

  /** Some claws understand only one of the two request names. */
  function list(): readonly Json[] | undefined {
    for (let left = lists; left--; words.reverse()) {
      lists = 2
      const tools = readTools(claw(`${words[0]}\n`, LIST_MS) ?? '')
      if (tools) return tools
    }
    return undefined
  }

  function use({ id, name, input }: ToolUse): object {
    const answer = claw(callLine(name, input ?? {}))
    return { type: 'tool_result', tool_use_id: id, content: answer ?? 'error: no answer', is_error: answer === undefined }
  }

  /** Does not store apologies in the history. */
  function respond(question: string): string {
    const tools = list()
    const { system, messages } = memory.prompt(question)
    for (let round = 0; round < TOOL_ROUNDS; round++) {
      const reply = think({ max_tokens: 1024, system, messages, tools })
      if (!reply.uses[0]) {
        if (reply.error) return reply.error === 'fatal' ? 'Temporarily unavailable' : "I'm temporarily unavailable."
        if (reply.text) memory.append(question, reply.text)
        return reply.text
      }
      messages.push({ role: 'assistant', content: reply.content }, { role: 'user', content: reply.uses.map(use) })
    }
    return 'I stopped: too many rounds of tools.'
  }

  serve(respond, () => {
    memory.compact(max, think)
    if (env.PLANCK_LEAN) Bun.gc(true)
  })
}

function count(name: string, otherwise: string): number {
  const text = env[name] || otherwise
  return /^\d+$/.test(text) ? Number(text) : fail(`${name}: "${text}" is not a whole number`)
}

/** Escapes control characters: the name of a brain or a file must not control the terminal. */
function tell(text: string): void {
  console.error(text.replace(/\p{C}/gu, escape))
}

function fail(message: string): never {
  tell(message)
  process.exit(1)
}

/**
 * Runs forever. Unread answers stay in the pipe; while it is full, the agent waits. The agent keeps its own write descriptor open only
 * while nobody else writes; after that the inbox reports when the last writer has left, even in the middle of a line.
 */
function serve(respond: (text: string) => string, afterwards: () => void): void {
  const path = `${fifos}/interact_in`
  let door = openPipe(path, 'r+')
  const inbox = openPipe(path, 'r')
  const outbox = openPipe(`${fifos}/interact_out`, 'r+')
  const lines = createFifoLines(MAX_BYTES)

  function take(line: Line): void {
    const message = readMessage(line.text)
    if (!message.ok) {
      tell(`interact_in: ${message.problem}`)
      return
    }
    const answer = line.ok ? respond(message.text) : line.error
    for (let rest = Buffer.from(`${message.channel}\t${escapeText(answer)}\n`); rest.length > 0; ) rest = rest.subarray(outbox.write(rest))
    afterwards()
  }

  for (;;) {
    let bytes = door.read()
    door.close()
    for (; bytes.length > 0; bytes = inbox.read()) lines.push(bytes).forEach(take)
    lines.end().forEach(take)
    door = openPipe(path, 'r+')
  }
}

function openAsk(name: string, usualMs: number): Ask {
  const talk = createDuplex([openPipe(`${fifos}/${name}_in`), openPipe(`${fifos}/${name}_out`, READER)], MAX_BYTES)
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  return (text, timeoutMs = usualMs) => {
    const asking = talk.ask(text, timeoutMs)
    let found = asking.poll()
    for (; typeof found === 'number'; found = asking.poll()) Atomics.wait(sleeper, 0, 0, found)
    if (found.ok) return found.answer
    tell(`${name}: ${found.why}`)
    return undefined
  }
}

/** Opens three files that people read and edit: it reads soul.md and summary.md now, history.jsonl on each use. */
function openMemory(dir: string, keep: number): Memory {
  const [history, summaries, pending] = [`${dir}/history.jsonl`, `${dir}/summary.md`, `${dir}/compaction.planck`]
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  settle()
  const soul = read(`${dir}/soul.md`, `${SOUL}\n`).trimEnd() || SOUL
  let summary = read(summaries, '').trimEnd()
  read(history, '')

  /** Ignores lines that are not messages. */
  function all(): Said[] {
    return read(history)
      .split('\n')
      .flatMap((line) => {
        const { role, content } = fieldsOf(parseJson(line))
        return typeof content === 'string' && (role === 'user' || role === 'assistant') ? [{ role, content }] : []
      })
  }

  /** Returns where the last `keep` messages begin; never at an answer whose question is left out. */
  function start(messages: readonly Said[]): number {
    let at = Math.max(0, messages.length - keep)
    while (messages[at]?.role === 'assistant') at++
    return at
  }

  /** Appends question and answer in one write, on a new line if a crash left a partial one. */
  function append(question: string, answer: string): void {
    const pair = text([
      { role: 'user', content: question },
      { role: 'assistant', content: answer },
    ])
    const before = read(history)
    appendFileSync(history, (before && !before.endsWith('\n') ? '\n' : '') + pair, { mode: 0o600 })
  }

  function compact(max: number, think: Think): void {
    const messages = all()
    if (messages.length <= max) return
    const cut = start(messages)
    const content = `EXISTING SUMMARY:\n${summary}\n\nCONVERSATION TO SUMMARIZE:\n${text(messages.slice(0, cut)).trimEnd()}`
    const reply = think({ max_tokens: 2048, system: COMPACT, messages: [{ role: 'user', content }] })
    if (!reply.text) return
    summary = reply.text
    put(pending, jsonLine([summary, text(messages.slice(cut))]))
    settle()
  }

  /** Completes a compaction. It counts once `pending` has its name: after a crash the next start repeats these steps. */
  function settle(): void {
    const next = parseJson(read(pending))
    if (!Array.isArray(next)) return
    put(summaries, String(next[0]))
    put(history, String(next[1]))
    rmSync(pending)
  }

  function prompt(content: string): Prompt {
    const messages = all()
    const system = summary ? `${soul}\n---\nCONVERSATION SUMMARY:\n${summary}` : soul
    return { system, messages: [...messages.slice(start(messages)), { role: 'user', content }] }
  }

  return { prompt, append, compact }
}

function text(messages: readonly Said[]): string {
  return messages.map(jsonLine).join('')
}

/** Creates a missing file with the text, if there is one. It reads regular files only, because a FIFO of that name would block forever. */
function read(path: string, initial?: string): string {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found && !found.isFile()) fail(`${path} is not a file`)
  if (found) return readFileSync(path, 'utf8')
  if (initial !== undefined) put(path, initial)
  return ''
}

/** Replaces the file atomically: readers see the old or the new file, never a part. */
function put(path: string, text: string): void {
  writeFileSync(`${path}.next`, text, { mode: 0o600, flush: true })
  renameSync(`${path}.next`, path)
}
