/** The pure router as a program of its own, run and not imported, on Bun or Node: soul, history, tools, compaction; nothing else. */

import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createSplitter } from './kit/frames.ts'
import type { Json } from './kit/json.ts'
import { type BrainReply, readReply, type ToolUse } from './kit/reply.ts'
import { callLine, DISCOVERY, escapeText, fieldsOf, parseJson, readMessage, readTools } from './kit/wire.ts'
import { createFifos } from './service/fifo/create.ts'
import { openPipe } from './service/fifo/pipe.ts'
import { createTalk } from './service/fifo/talk.ts'

const MODEL = 'claude-haiku-4-5-20241022'
const SOUL = 'You are a helpful personal assistant.'
const COMPACT =
  'You are a memory compaction assistant. Summarize the following conversation, preserving: key facts about the user, their preferences, decisions made, ongoing projects, and important context. Be concise but complete. Output only the summary, no preamble.'
/** Questions to the brain for one message. */
const TOOL_ROUNDS = 20
/** Of a message and of an answer of the brain or the claw. */
const MAX_BYTES = 4_194_304
/** How long the claw may take to list its tools, for either word it may know; without an answer the brain is asked without them. */
const LIST_MS = 1000

type Env = typeof process.env
type Ask = (text: string, timeoutMs?: number) => string | undefined
type Think = (payload: object) => BrainReply
type Said = { readonly role: string; readonly content: string }
type Prompt = { readonly system: string; readonly messages: unknown[] }
/** Some claws know the one word for it, some the other. */
type Claw = { list(): readonly Json[] | undefined; use(use: ToolUse): unknown }
type Memory = {
  prompt(text: string): Prompt
  append(question: string, answer: string): void
  compact(max: number, think: Think): void
}

begin(process.env)

/**
 * Bun's compilers to machine code would cost 10 MB and gain nothing here, so on Bun the process becomes a leaner one, which finds its FIFOs
 * made. `main` never returns.
 */
function begin(env: Env): void {
  const fifos = env.PLANCKCLAW_FIFOS || '/tmp/planckclaw'
  if (env.PLANCK_LEAN) main(env, fifos)
  createFifos(fifos).then((created) => {
    if (!created.ok) fail(created.message)
    const { argv, execArgv, execPath, versions } = process
    const lean = { ...env, BUN_JSC_useJIT: '0', MIMALLOC_PURGE_DELAY: '0', PLANCK_LEAN: '1' }
    if (versions.bun) process.execve?.(execPath, [execPath, ...execArgv, ...argv.slice(1)], lean)
    main(env, fifos)
  })
}

function main(env: Env, fifos: string): void {
  const [max, keep] = [count(env, 'HISTORY_MAX', 200), count(env, 'HISTORY_KEEP', 40)]
  if (keep >= max) fail('HISTORY_KEEP must be less than HISTORY_MAX')
  const memory = openMemory(env.PLANCKCLAW_DIR || './memory', keep)
  const timeoutMs = count(env, 'PLANCKCLAW_TIMEOUT', 300) * 1000
  const think = openBrain(`${fifos}/brain`, timeoutMs)
  const claw = openClaw(`${fifos}/claw`, timeoutMs)
  serve(fifos, (text, say) => {
    const answer = respond({ think, claw, tools: claw.list(), ...memory.prompt(text) })
    memory.append(text, answer)
    say(answer)
    memory.compact(max, think)
    if (env.PLANCK_LEAN) Bun.gc(true)
  })
}

function count(env: Env, name: string, otherwise: number): number {
  const value = Number(env[name] || otherwise)
  return Number.isSafeInteger(value) && value >= 0 ? value : fail(`${name}: "${env[name]}" is no whole number`)
}

/** What a brain or a file is called must not drive the terminal. */
function tell(text: string): void {
  console.error(text.replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, escape))
}

function fail(message: string): never {
  tell(message)
  process.exit(1)
}

/** For ever. What nobody reads of the answers stays in the pipe; while that is full, we wait. */
function serve(fifos: string, hear: (text: string, say: (answer: string) => void) => void): void {
  const inbox = openPipe(`${fifos}/interact_in`, true)
  const outbox = openPipe(`${fifos}/interact_out`, true)
  const lines = createSplitter(MAX_BYTES)
  for (;;) {
    for (const line of lines.push(inbox.read())) {
      const message = readMessage(line.text)
      if (!message.ok) {
        tell(`interact_in: ${message.problem}`)
        continue
      }
      const say = (text: string): void => {
        for (let rest = Buffer.from(`${message.channel}\t${escapeText(text)}\n`); rest.length > 0; )
          rest = rest.subarray(outbox.write(rest))
      }
      if (line.ok) hear(message.text, say)
      else say(line.error)
    }
  }
}

function openAsk(path: string, usualMs: number): Ask {
  const [request, answer] = [openPipe(`${path}_in`), openPipe(`${path}_out`)]
  const talk = createTalk({ request, answer, maxBytes: MAX_BYTES })
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  return (text, timeoutMs = usualMs) => {
    const asking = talk.ask(text, timeoutMs)
    let found = asking.look()
    for (; typeof found === 'number'; found = asking.look()) Atomics.wait(sleeper, 0, 0, found)
    if (found.ok) return found.answer
    tell(`${path}: ${found.why}`)
    return undefined
  }
}

function openBrain(path: string, timeoutMs: number): Think {
  const ask = openAsk(path, timeoutMs)
  return (payload) => {
    const answer = ask(`${JSON.stringify({ model: MODEL, ...payload })}\n\n`) ?? '{"error":"timeout"}'
    const reply = readReply(answer)
    if (reply.type === 'error') tell(`brain: ${answer.slice(0, 500)}`)
    return reply
  }
}

function openClaw(path: string, timeoutMs: number): Claw {
  const ask = openAsk(path, timeoutMs)
  const words = [...DISCOVERY]
  return {
    list() {
      for (const _ of words) {
        const tools = readTools(ask(`${words[0]}\n`, LIST_MS) ?? '')
        if (tools) return tools
        words.reverse()
      }
      return undefined
    },
    use({ id, name, input }) {
      const answer = ask(callLine(name, input))
      return { type: 'tool_result', tool_use_id: id, content: answer ?? 'error: no answer', is_error: answer === undefined }
    },
  }
}

type Turn = Prompt & { readonly think: Think; readonly claw: Claw; readonly tools: readonly Json[] | undefined }

function respond({ think, claw, tools, system, messages }: Turn): string {
  for (let round = 0; round < TOOL_ROUNDS; round += 1) {
    const reply = think({ max_tokens: 1024, system, messages, tools })
    if (reply.type === 'text') return reply.text
    if (reply.type === 'error') return reply.error === 'fatal' ? 'Temporarily unavailable' : "I'm temporarily unavailable."
    messages.push({ role: 'assistant', content: reply.content }, { role: 'user', content: reply.uses.map(claw.use) })
  }
  return 'I stopped: too many rounds of tools.'
}

/** Three files that people read and edit: soul.md and summary.md are read now, history.jsonl each time. */
function openMemory(dir: string, keep: number): Memory {
  const [history, summaries, pending] = [`${dir}/history.jsonl`, `${dir}/summary.md`, `${dir}/compaction.planck`]
  if (!existsSync(dir)) mkdirSync(dir, { recursive: true, mode: 0o700 })
  settle(parseJson(read(pending)))
  const soul = read(`${dir}/soul.md`).trimEnd() || SOUL
  let summary = read(summaries).trimEnd()

  /** Lines that are no messages are left alone. */
  function all(): Said[] {
    return read(history)
      .split('\n')
      .flatMap((line) => {
        const { role, content } = fieldsOf(parseJson(line))
        return typeof content === 'string' && (role === 'user' || role === 'assistant') ? [{ role, content }] : []
      })
  }

  /** Where the last `keep` messages begin; never with an answer whose question is left out. */
  function start(messages: readonly Said[]): number {
    let at = Math.max(0, messages.length - keep)
    while (messages[at]?.role === 'assistant') at++
    return at
  }

  /** A pair in one write; after a line that a crash tore, on a new one. */
  function append(question: string, answer: string): void {
    const pair = text([
      { role: 'user', content: question },
      { role: 'assistant', content: answer },
    ])
    const before = read(history)
    const torn = before && !before.endsWith('\n')
    appendFileSync(history, torn ? `\n${pair}` : pair, { mode: 0o600 })
  }

  function compact(max: number, think: Think): void {
    const messages = all()
    if (messages.length <= max) return
    const cut = start(messages)
    const content = `EXISTING SUMMARY:\n${summary}\n\nCONVERSATION TO SUMMARIZE:\n${text(messages.slice(0, cut)).trimEnd()}`
    const reply = think({ max_tokens: 2048, system: COMPACT, messages: [{ role: 'user', content }] })
    if (reply.type !== 'text') return
    summary = reply.text
    put(pending, JSON.stringify([summary, text(messages.slice(cut))]))
    settle(parseJson(read(pending)))
  }

  /** Once `pending` has its name the compaction counts: the next start does these steps again when a crash came between them. */
  function settle(next: unknown): void {
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
  return messages.map((message) => `${JSON.stringify(message)}\n`).join('')
}

/** Empty when the file is missing. */
function read(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/** The old or the new file, never a part. */
function put(path: string, text: string): void {
  writeFileSync(`${path}.next`, text, { mode: 0o600, flush: true })
  renameSync(`${path}.next`, path)
}
