#!/usr/bin/env bun
/**
 * Many conversations in one process: library agents of one home, warm, each turn one file_list and an answer, model without latency. Beside it
 * a floor: the same number of commits of the same size to SQLite and one synced receipt a turn, grouped by turn of the event loop, and nothing
 * else. `bun bench/concurrency.ts [N …] [--json]`; N is 8, 64 and 200 when absent.
 */

import { Database } from 'bun:sqlite'
import { closeSync, fdatasyncSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createAgent, type ModelCall } from '../src/agent.ts'
import { writeSection } from './results.ts'

type Figure = {
  readonly conversations: number
  readonly turns_per_s: number
  readonly floor_per_s: number
  readonly share: number
  /** Milliseconds. */
  readonly delay_p99_ms: number
  readonly rss_mb: number
}

const commitsATurn = 4
const rowsACommit = 3

async function main(words: readonly string[]): Promise<void> {
  const counts = words.filter((word) => /^\d+$/.test(word)).map(Number)
  const figures: Figure[] = []
  for (const count of counts.length > 0 ? counts : [8, 64, 200]) figures.push(await measure(count))
  if (words.includes('--json')) console.log(JSON.stringify(figures))
  else {
    for (const figure of figures) console.log(line(figure))
    await writeSection('Conversations at once', table(figures))
  }
}

/** The targets of 64 at once hold for 200 as well; at 8 the lower of 400 turns/s and 15 % of the floor is asked for. */
function table(figures: readonly Figure[]): string {
  const rows = figures.map(
    ({ conversations, turns_per_s, floor_per_s, share, delay_p99_ms, rss_mb }) =>
      `| ${conversations} | ${turns_per_s} | ${floor_per_s} | ${(share * 100).toFixed(0)} % | ${delay_p99_ms} | ${rss_mb} |`,
  )
  return ['| at once | turns/s | floor, turns/s | share | event loop p99, ms | memory, MB |', '|--:|--:|--:|--:|--:|--:|', ...rows].join(
    '\n',
  )
}

const line = ({ conversations, turns_per_s, floor_per_s, share, delay_p99_ms, rss_mb }: Figure) =>
  `${String(conversations).padStart(4)} at once  ${turns_per_s} turns/s  floor ${floor_per_s}  share ${(share * 100).toFixed(0)} %  event loop p99 ${delay_p99_ms} ms  ${rss_mb} MB`

const model: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  if (last?.role === 'tool') yield { type: 'text', content: 'listed' }
  else yield { type: 'tool_use', name: 'file_list', input: { path: '.' } }
}

async function measure(conversations: number): Promise<Figure> {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-bench-'))
  const [home, cwd] = [join(folder, 'home'), join(folder, 'work')]
  for (const each of [home, cwd]) mkdirSync(each)
  writeFileSync(join(cwd, 'notes.md'), 'hello\n')
  const env = { HOME: home, PATH: process.env.PATH }
  const agents = Array.from({ length: conversations }, () => createAgent({ home: join(home, '.braidclaw'), cwd, env, modelCall: model }))
  const turn = async (agent: (typeof agents)[number]) => {
    for await (const event of agent.run('What is here?')) if (event.type === 'error') throw new Error(event.message)
    if (agent.ending()?.code !== 'answered') throw new Error(`a turn ended with ${JSON.stringify(agent.ending())}`)
  }
  const rounds = Math.max(3, Math.ceil(400 / conversations))
  await Promise.all(agents.map(turn))
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const begin = performance.now()
  await Promise.all(
    agents.map(async (agent) => {
      for (let round = 0; round < rounds; round++) await turn(agent)
    }),
  )
  const turns_per_s = Math.round((conversations * rounds) / ((performance.now() - begin) / 1000))
  delay.disable()
  const rss_mb = Math.round(process.memoryUsage.rss() / 1e6)
  for (const agent of agents) await agent.close()
  const floor_per_s = await floor(folder, conversations, rounds)
  rmSync(folder, { recursive: true, force: true })
  return {
    conversations,
    turns_per_s,
    floor_per_s,
    share: turns_per_s / floor_per_s,
    delay_p99_ms: Math.round(delay.percentile(99) / 1e5) / 10,
    rss_mb,
  }
}

/** @returns turns a second that the store alone could keep */
async function floor(folder: string, conversations: number, rounds: number): Promise<number> {
  const db = new Database(join(folder, 'floor.sqlite'))
  db.run('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE journal(seq INTEGER PRIMARY KEY, body TEXT)')
  const insert = db.query('INSERT INTO journal(body) VALUES (?)')
  const receipts = openSync(join(folder, 'floor.log'), 'a')
  const body = 'x'.repeat(600)
  let waiting: { readonly receipt: boolean; readonly done: () => void }[] = []
  const commit = () => {
    const group = waiting
    waiting = []
    db.run('BEGIN IMMEDIATE')
    for (const _ of group) for (let row = 0; row < rowsACommit; row++) insert.run(body)
    const lines = group.filter(({ receipt }) => receipt).map(() => `${body}\n`)
    if (lines.length > 0) {
      writeSync(receipts, lines.join(''))
      fdatasyncSync(receipts)
    }
    db.run('COMMIT')
    for (const { done } of group) done()
  }
  const ask = (receipt: boolean) =>
    new Promise<void>((done) => {
      if (waiting.push({ receipt, done }) === 1) setImmediate(commit)
    })
  const begin = performance.now()
  await Promise.all(
    Array.from({ length: conversations }, async () => {
      for (let round = 0; round < rounds; round++) for (let step = 0; step < commitsATurn; step++) await ask(step === 2)
    }),
  )
  const seconds = (performance.now() - begin) / 1000
  closeSync(receipts)
  db.close()
  return Math.round((conversations * rounds) / seconds)
}

if (import.meta.main) await main(process.argv.slice(2))
