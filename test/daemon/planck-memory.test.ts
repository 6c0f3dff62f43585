import { test as always, describe, expect } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Person } from '../support/daemon.ts'
import { type Payload, startApi } from '../support/messages-api.ts'
import { needs } from '../support/needs.ts'
import { type AgentFolderFixture, scenes } from '../support/planck.ts'
import { curlBrain } from '../support/planck-scripts.ts'
import { repetitions } from '../support/tier.ts'

const test = always.if(needs('curl'))

const kills = repetitions({ fast: 6, deep: 24 })

const COMPACTOR =
  'You are a memory compaction assistant. Summarize the following conversation, preserving: key facts about the user, their preferences, decisions made, ongoing projects, and important context. Be concise but complete. Output only the summary, no preamble.'

let at: AgentFolderFixture
let human: Person
scenes((scene) => {
  ;({ at, human } = scene)
})

const isCompaction = ({ system }: Payload): boolean => system === COMPACTOR
const line = (role: string, content: unknown): string => `${JSON.stringify({ role, content })}\n`
const pair = (n: number): string => line('user', `question ${n}`) + line('assistant', `answer ${n}`)
const pairs = (from: number, to: number): string => Array.from({ length: to - from + 1 }, (_, at) => pair(from + at)).join('')

/** A brain that answers `question N` with `answer N` and sums up with `summary`. */
function world(summary: string | { readonly status: number } = 'They talked.') {
  const api = startApi((payload) =>
    isCompaction(payload) ? summary : String(payload.messages.at(-1)?.content).replace('question', 'answer'),
  )
  at.bridge(curlBrain, { API_URL: api.url })
  // That of the original ends with its agent.
  at.ours('claw.sh')
  return api
}

const planck = (env: { readonly [name: string]: string } = {}) =>
  at.planck('bun', { HISTORY_MAX: '6', HISTORY_KEEP: '4', PLANCKCLAW_TIMEOUT: '20', ...env })

/** Waits until the conversation has been compacted and all is in place. */
async function compacted(summary: string): Promise<void> {
  while (at.memory('summary.md') !== summary || at.memory('compaction.planck') !== undefined) await Bun.sleep(5)
}

describe('the prompt', () => {
  test('leaves out what is no message, and says nothing of it to the brain', async () => {
    at.remember(
      'history.jsonl',
      `{"role":"user"\nnonsense\n${pair(1)}[]\nnull\n${line('system', 'x')}${line('user', { text: 1 })}${pair(2).trimEnd()}`,
    )
    using api = world()
    planck()
    expect(await human.ask('question 3')).toBe('answer 3')
    expect(api.asked[0]?.messages.map(({ content }) => content)).toEqual(['question 1', 'answer 1', 'question 2', 'answer 2', 'question 3'])
    expect(at.memory('history.jsonl')).toEndWith(`${pair(2)}${pair(3)}`)
  })

  test('never begins with an answer', async () => {
    at.remember('history.jsonl', pairs(1, 2))
    using api = world()
    planck({ HISTORY_KEEP: '3' })
    await human.ask('question 3')
    expect(api.asked[0]?.messages.map(({ content }) => content)).toEqual(['question 2', 'answer 2', 'question 3'])
  })

  test('has the soul, and the summary only when there is one', async () => {
    using api = world()
    const first = planck()
    await human.ask('question 1')
    await first.kill()
    at.remember('soul.md', 'You are Planck.\n')
    at.remember('summary.md', 'Marc works in tech.\n')
    planck()
    await human.ask('question 2')
    expect(api.asked.map(({ system }) => system)).toEqual([
      'You are a helpful personal assistant.',
      'You are Planck.\n---\nCONVERSATION SUMMARY:\nMarc works in tech.',
    ])
  })
})

describe('compaction', () => {
  test.each([
    ['fails', { status: 500 }],
    ['is empty', ''],
  ])(
    'that %s changes nothing, and is tried again after the next message',
    async (_, summary) => {
      at.remember('history.jsonl', pairs(1, 3))
      using api = world(summary)
      planck()
      await human.ask('question 4')
      await human.ask('question 5')
      await human.ask('question 6')
      expect(at.memory('summary.md')).toBe('')
      expect(at.memory('history.jsonl')).toBe(pairs(1, 6))
      expect(new Set(api.asked.filter(isCompaction).map(({ messages }) => messages.length))).toEqual(new Set([1]))
    },
    120_000,
  )

  test('asks word for word, keeps the last messages, and the next prompt has the summary', async () => {
    at.remember('summary.md', 'Before.\n')
    at.remember('history.jsonl', pairs(1, 3))
    using api = world('After "all".')
    planck()
    await human.ask('question 4')
    await compacted('After "all".')
    await human.ask('question 5')
    expect(JSON.stringify(api.asked[1])).toBe(
      JSON.stringify({
        model: 'claude-haiku-4-5-20251001',
        max_tokens: 2048,
        system: COMPACTOR,
        messages: [{ role: 'user', content: `EXISTING SUMMARY:\nBefore.\n\nCONVERSATION TO SUMMARIZE:\n${pairs(1, 2).trimEnd()}` }],
      }),
    )
    expect(api.asked[2]?.system).toBe('You are a helpful personal assistant.\n---\nCONVERSATION SUMMARY:\nAfter "all".')
    expect(at.memory('history.jsonl')).toBe(pairs(3, 5))
  })

  /** Each thing a compaction leaves on the disk, in its order, as a crash right after it would. */
  const pending = JSON.stringify(['New.', pairs(3, 4)])
  test.each([
    ['while the new state is written', { 'compaction.planck.next': pending.slice(0, 20) }, 'old'],
    ['when it is written but does not count', { 'compaction.planck.next': pending }, 'old'],
    ['when it counts', { 'compaction.planck': pending }, 'new'],
    ['while the summary is written', { 'compaction.planck': pending, 'summary.md.next': 'N' }, 'new'],
    ['when the summary is in place', { 'compaction.planck': pending, 'summary.md': 'New.' }, 'new'],
    ['while the history is written', { 'compaction.planck': pending, 'summary.md': 'New.', 'history.jsonl.next': '{"ro' }, 'new'],
    ['when both are in place', { 'compaction.planck': pending, 'summary.md': 'New.', 'history.jsonl': pairs(3, 4) }, 'new'],
  ])('cut off %s leaves the old state or the new', async (_, files: { readonly [name: string]: string }, state) => {
    at.remember('summary.md', 'Old.')
    at.remember('history.jsonl', pairs(1, 4))
    for (const [name, text] of Object.entries(files)) at.remember(name, text)
    using api = world()
    planck({ HISTORY_MAX: '100' })
    await human.ask('question 5')
    expect(api.asked[0]?.system).toEndWith(state === 'old' ? 'Old.' : 'New.')
    expect(at.memory('summary.md')).toBe(state === 'old' ? 'Old.' : 'New.')
    expect(at.memory('history.jsonl')).toBe(pairs(state === 'old' ? 1 : 3, 5))
    expect(at.memory('compaction.planck')).toBeUndefined()
  })

  test.each([
    ['compaction.planck.next', 'old'],
    ['summary.md.next', 'new'],
    ['history.jsonl.next', 'new'],
  ])('that fails to write %s ends the program, and the next start finds the old state or the new', async (name, state) => {
    at.remember('history.jsonl', pairs(1, 3))
    at.remember('summary.md', '')
    const stone = join(at.dir, 'memory', name)
    mkdirSync(stone)
    using api = world('New.')
    const router = planck()
    expect(await human.ask('question 4')).toBe('answer 4')
    expect((await router.ended).stderr).toContain('EISDIR')
    rmSync(stone, { recursive: true })
    planck({ HISTORY_MAX: '100' })
    await human.ask('question 5')
    expect(api.asked.at(-1)?.system).toEndWith(state === 'old' ? 'assistant.' : 'New.')
    expect(at.memory('history.jsonl')).toBe(pairs(state === 'old' ? 1 : 3, 5))
  })

  test('killed at any moment loses nothing that is not in a summary', async () => {
    using api = startApi((payload) => {
      if (!isCompaction(payload)) return String(payload.messages.at(-1)?.content).replace('question', 'answer')
      const text = String(payload.messages[0]?.content)
      return [...new Set(Array.from(text.matchAll(/\bS?(\d+)/g), (found) => found[1]))].map((n) => `S${n}`).join(' ')
    })
    // A shell that writes while the router dies is ended by SIGPIPE: whoever keeps bridges starts them again.
    const here = at
    const keepBrain = async () => {
      while (existsSync(here.dir)) await here.bridge(curlBrain, { API_URL: api.url }).ended
    }
    void keepBrain()
    at.ours('claw.sh')
    for (let number = 1; number <= kills; number += 1) {
      const router = planck({ HISTORY_MAX: '2', HISTORY_KEEP: '0' })
      await human.ask(`question ${number}`)
      await Bun.sleep((number * 5) % 23)
      await router.kill()
    }
    planck({ HISTORY_MAX: '1', HISTORY_KEEP: '0' })
    await human.ask(`question ${kills + 1}`)
    while (at.memory('history.jsonl') !== '' || existsSync(join(at.dir, 'memory', 'compaction.planck'))) await Bun.sleep(5)
    const known = new Set((at.memory('summary.md') ?? '').split(' '))
    expect([...known].sort()).toEqual(Array.from({ length: kills + 1 }, (_, n) => `S${n + 1}`).sort())
  }, 120_000)
})

test('the memory is made when it is missing, for its owner only', async () => {
  const folder = join(at.dir, 'new', 'memory')
  using _api = world()
  planck({ PLANCKCLAW_DIR: folder })
  await human.ask('question 1')
  while (!existsSync(join(folder, 'history.jsonl'))) await Bun.sleep(5)
  expect(readFileSync(join(folder, 'history.jsonl'), 'utf8')).toBe(pair(1))
  mkdirSync(folder, { recursive: true })
  const { statSync } = await import('node:fs')
  expect([folder, join(folder, 'history.jsonl')].map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual(['700', '600'])
  rmSync(join(at.dir, 'new'), { recursive: true })
})
