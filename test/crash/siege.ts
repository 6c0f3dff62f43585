/** One home under siege: turns with tools, each killed at a random instant, each followed by a start that must put things right. */

import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempts } from '../../src/memory/journal/attempts.ts'
import { type Home, randomFrom } from './home.ts'
import {
  type Acknowledged,
  acknowledged,
  brokenEffects,
  brokenPromises,
  type Effect,
  receipts,
  unevenReceipts,
  wasInterrupted,
  withMemory,
} from './oracle.ts'

export type Siege = {
  /** Victims that the signal reached before they ended. */
  readonly kills: number
  readonly rounds: number
  /** What was said to be done, and what stands in the records in the end. */
  readonly count: { readonly turns: number; readonly results: number; readonly attempts: number; readonly receipts: number }
  /** Of what kind the deaths were, to see that they are spread. */
  readonly tally: { readonly beforeInit: number; readonly midTurn: number; readonly afterDone: number; readonly interruptedActs: number }
  readonly broken: readonly string[]
}

export type Turn = { readonly prompt: string; readonly responses: readonly object[]; readonly effects: readonly Effect[] }

/** How many events a turn shows from `init` to `done`. */
const shownLines = 18
const tornLine = '{"args_hash":"torn'
const reported = 'recovered after a crash'

export async function besiege(home: Home, { kills, seed }: { readonly kills: number; readonly seed: number }): Promise<Siege> {
  const random = randomFrom(seed)
  const broken: string[] = []
  const all: { said: Acknowledged; turn: Turn }[] = []
  const tally = { beforeInit: 0, midTurn: 0, afterDone: 0, interruptedActs: 0 }
  let [rounds, killed, usualMs] = [0, 0, 60]
  // Goes on until enough blows have fallen amid a turn: on a slow machine most may fall before one.
  for (; (killed < kills || tally.midTurn <= kills / 4) && rounds < 3 * kills + 10 && broken.length < 5; rounds += 1) {
    const turn = turnOf(`${seed}-${rounds}`, random)
    const { stdout, hit, ms } = await strike(home, turn, random, usualMs)
    usualMs = hit ? usualMs : (usualMs + ms) / 2
    if (hit) killed += 1
    const said = acknowledged(turn.prompt, stdout)
    all.push({ said, turn })
    if (hit) tally[said.runId === undefined ? 'beforeInit' : said.done ? 'afterDone' : 'midTurn'] += 1
    const torn = hit && random() < 0.1 && receipts(home).size > 0
    // A signal cannot cut a short write in two; a machine that loses power can.
    if (torn) appendFileSync(join(home.state, 'tool_receipts.log'), tornLine)
    const { problems, interrupted } = await inspect(home, { said, turn, torn, hit })
    tally.interruptedActs += interrupted
    broken.push(...problems.map((problem) => `round ${rounds}: ${problem}`))
  }
  broken.push(...(await lookBack(home, all)))
  const count = {
    turns: all.filter(({ said }) => said.done).length,
    results: all.reduce((sum, { said }) => sum + said.results.length, 0),
    attempts: withMemory(home, (memory) => [...attempts(memory.store)].length),
    receipts: receipts(home).size,
  }
  return { kills: killed, rounds, count, tally, broken }
}

/** Half of the blows fall at any instant of the life, half right after some event was shown. */
async function strike(home: Home, { prompt, responses }: Turn, random: () => number, usualMs: number) {
  const begin = performance.now()
  const running = home.start(['agent', '-m', prompt, '--output-format', 'stream-json', '--approve-all-medium'], responses)
  const soon = random() < 0.5
  if (soon) await Bun.sleep(random() * usualMs * 1.1)
  else {
    await running.lines(Math.ceil(random() * shownLines))
    await Bun.sleep(random() * 4)
  }
  running.kill()
  const { code, stdout } = await running.result
  return { stdout, hit: code === null, ms: performance.now() - begin }
}

type Case = { readonly said: Acknowledged; readonly turn: Turn; readonly torn: boolean; readonly hit: boolean }

/** Starts again after a death, and holds everything against what was said before it. */
export async function inspect(home: Home, { said, turn, torn, hit }: Case): Promise<{ problems: string[]; interrupted: number }> {
  const next = await home.run(['agent', '-m', 'go on', '--output-format', 'stream-json'], [toolCall('time', {}), { text: 'on we go' }])
  const verified = await home.run(['receipt', 'verify', '--deep'])
  return withMemory(home, (memory) => {
    const entries = said.runId === undefined ? [] : memory.journal.events(said.runId)
    const mended = torn || wasInterrupted(entries)
    const shown = next.stderr.includes(reported)
    const problems = [
      ...(next.code === 0 ? [] : [`the next start ended with ${next.code}: ${next.stderr}`]),
      ...(mended && !shown ? [`put right, not reported: ${torn ? 'torn line' : 'run'}; stderr: ${next.stderr}`] : []),
      ...(shown && !hit ? [`reported a crash that was none: ${next.stderr}`] : []),
      ...(verified.code === 0 && verified.stderr === '' ? [] : [`verify said ${verified.code}: ${verified.stdout}${verified.stderr}`]),
      ...brokenPromises(home, memory, said),
      ...brokenEffects(home, entries, turn.effects),
      ...unevenReceipts([...receipts(home).values()], [...attempts(memory.store)]),
    ]
    return { problems, interrupted: entries.filter(({ body }) => JSON.stringify(body).includes('interrupted: outcome unknown')).length }
  })
}

/** At the end once more: what was kept after one crash must not have been lost in a later one, and the words are found by people. */
async function lookBack(home: Home, all: readonly { said: Acknowledged; turn: Turn }[]): Promise<string[]> {
  const answered = all.filter(({ said }) => said.done)
  const exported = await home.run(['memory', 'export'])
  const lost = answered.filter(({ said }) => !exported.stdout.includes(JSON.stringify(said.done?.result)))
  const [last] = answered.slice(-1)
  const found = last ? await home.run(['memory', 'search', '--json', last.turn.prompt]) : undefined
  const later = withMemory(home, (memory) =>
    all.flatMap(({ said, turn }) => [
      ...brokenPromises(home, memory, said),
      ...brokenEffects(home, said.runId === undefined ? [] : memory.journal.events(said.runId), turn.effects),
    ]),
  )
  return [
    ...lost.map(({ turn }) => `in the end the answer to "${turn.prompt}" is not in the export`),
    ...(found && !found.stdout.includes('conversation_') ? [`search does not find "${last?.turn.prompt}": ${found.stderr}`] : []),
    ...later.map((problem) => `in the end: ${problem}`),
  ]
}

const toolCall = (name: string, input: object) => ({ tool_calls: [{ name, arguments: input }] })

/** Reads, writes, commands, a refusal; every effect has a text of its own, so that doing it twice shows. */
export function turnOf(name: string, random: () => number): Turn {
  const effect = (short: string, kind: Effect['kind']): Effect => {
    // A conversation that goes on would give a call id that it has seen another name.
    const callId = `${name}-${short}`
    const text = `text of ${callId}`
    // A file of the turn's own: a target that others change after it was judged is refused, and rightly so.
    return { callId, text, kind, path: kind === 'line' ? `${name}-ledger.txt` : `written/${callId}.txt` }
  }
  const effects = [effect('w1', 'whole'), effect('s1', 'line'), effect('w2', 'whole'), effect('s2', 'line')]
  const [w1, s1, w2, s2] = effects.map(callFor)
  const delay = () => ({ delay_ms: Math.floor(random() * 5) })
  return {
    prompt: `question ${name}`,
    effects,
    responses: [
      { tool_calls: [call('r1', 'file_read', { path: '/etc/passwd' }), call('l1', 'file_list', { path: '.' }), w1], ...delay() },
      { tool_calls: [s1, call('t1', 'time', {})], ...delay() },
      { tool_calls: [w2, s2], ...delay() },
      { text: `answer ${name}`, ...delay() },
    ],
  }
}

const call = (id: string, name: string, input: object) => ({ id, name, arguments: input })

function callFor({ callId, kind, path, text }: Effect) {
  return kind === 'line'
    ? call(callId, 'shell', { command: `echo '${text}' >> ${path}` })
    : call(callId, 'file_write', { path, content: text })
}
