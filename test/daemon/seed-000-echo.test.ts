/** Brains in shell that pass JSON through `echo`, under dash and bash, with the daemon and the pure router: what the model said arrives. */

import { test as always, beforeAll, describe, expect } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundlePlanck } from '../../scripts/planck.ts'
import { nest } from '../support/cli.ts'
import { background, daemon, type Person, person, stopping } from '../support/daemon.ts'
import { startApi } from '../support/messages-api.ts'
import { needs } from '../support/needs.ts'
import { den } from '../support/planck.ts'
import { claw, echoBrain, jqBrain, script, twiceBrain } from '../support/planck-scripts.ts'
import { isDeep } from '../support/tier.ts'

const test = always.if(needs('curl', 'jq'))

const planck = join(mkdtempSync(join(tmpdir(), 'braidclaw-planck-')), 'planck.js')
beforeAll(async () => void (await bundlePlanck(planck)))

/** A claw without tools. */
const noTools = 'while read -r _; do printf "[]\\n\\n"; done <$PLANCKCLAW_FIFOS/claw_in >$PLANCKCLAW_FIFOS/claw_out'

type Talk = { readonly human: Person; readonly history: () => string }

/** Somebody who talks to the daemon, while such a brain thinks for it. */
async function withDaemon(brain: string, shell: string, url: string, talk: (at: Talk) => Promise<void>): Promise<void> {
  using at = nest()
  await using agent = stopping(await daemon(at, ['--brain', 'fifo', '--bridge', `claw=${noTools}`]))
  const file = script(join(at.dir, 'brain.sh'), brain.replaceAll('/tmp/planckclaw', agent.dir))
  await using _ = background(at, `exec ${shell} ${file}`, { API_URL: url })
  await using human = await person(agent.dir)
  await talk({ human, history: () => Bun.spawnSync(['cat', join(at.home, '.braidclaw/agents/default/history.jsonl')]).stdout.toString() })
}

async function withPlanck(brain: string, shell: string, url: string, talk: (at: Talk) => Promise<void>): Promise<void> {
  using at = await den(planck)
  at.planck('bun', { PLANCKCLAW_TIMEOUT: '20' })
  at.bridge(`#!/usr/bin/env ${shell}\n${brain}`, { API_URL: url })
  at.bridge(claw)
  await using human = await person(at.fifos)
  await talk({ human, history: () => at.memory('history.jsonl') ?? '' })
}

const agents = [
  ['the daemon', withDaemon],
  ['planck', withPlanck],
] as const
const shells = ['dash', 'bash'] as const
const all = agents.flatMap(([name, run]) => shells.map((shell) => [name, shell, run] as const))
/** The fast tier tries each agent and each shell once. */
const cases = isDeep ? all : all.filter(([name, shell]) => (name === 'planck') === (shell === 'bash'))

const said = [
  'one\ntwo\n\nafter a blank line\n\n\nafter two',
  'a\ttab and "quotes", {"a":["b"]}\nend',
  'for (;;) printf("a\\n\\t\\\\");\nC:\\new\\table \\c \\0 \\012 \\x41 \\d+ \\/ $\\frac{a}{\\beta}$',
  'emoji 😀 é, C1 \u0085 and \u009b, a bell \u0007\n\ndone',
  `${'A long line with "quotes", a \\ and é.\n\n'.repeat(1700)}end`,
]

describe.each(cases)('%s with a brain under %s', (_, shell, run) => {
  test('hears what the model said', async () => {
    expect(said.at(-1)?.length).toBeGreaterThan(65_536)
    using api = startApi((_, n) => said[n] ?? 'too many')
    await run(echoBrain, shell, api.url, async ({ human, history }) => {
      for (const text of said) expect(await human.ask('Go on')).toBe(text)
      expect(history()).toContain(JSON.stringify(said[2]).slice(1, -1))
      expect(JSON.stringify(api.asked.at(-1)?.messages)).toContain(JSON.stringify(said[0]))
    })
  })

  test('hears a tool call whose input has newlines and quotes', async () => {
    using api = startApi(({ messages }, n) =>
      n === 0 ? { name: 'nobody', input: { text: 'a\n\n"b"\\n' } } : `n\n${JSON.stringify(messages.at(-1))}`,
    )
    await run(echoBrain, shell, api.url, async ({ human }) => {
      expect(await human.ask('Use it')).toContain('tool_result')
      expect(JSON.stringify(api.asked[1]?.messages)).toContain(JSON.stringify({ text: 'a\n\n"b"\\n' }))
    })
  })

  test('hears newlines that went through echo twice; what echo cut off there is an apology, and the next answer is whole', async () => {
    const texts = ['one\n\ntwo "three"\n\nfour', 'a \\c b\n\nthat is cut off', 'well again\n\nand again']
    using api = startApi((_, n) => texts[n] ?? 'too many')
    await run(twiceBrain, shell, api.url, async ({ human, history }) => {
      expect(await human.ask('One')).toBe('one\n\ntwo "three"\n\nfour')
      const began = performance.now()
      expect(await human.ask('Two')).toMatch(shell === 'bash' ? /^a \\c b/ : /emporarily unavailable/)
      expect(performance.now() - began).toBeLessThan(10_000)
      expect(await human.ask('Three')).toBe('well again\n\nand again')
      expect(history()).not.toContain('unavailable')
    })
  })

  test('hears an apology at once where jq refused what echo made, and else what the model said', async () => {
    using api = startApi((_, n) => (n === 1 ? 'two\nlines' : 'one "line"'))
    await run(jqBrain, shell, api.url, async ({ human }) => {
      expect(await human.ask('One')).toBe('one "line"')
      const began = performance.now()
      expect(await human.ask('Two')).toMatch(shell === 'bash' ? /^two\nlines$/ : /^two\nlines$|emporarily unavailable/)
      expect(performance.now() - began).toBeLessThan(10_000)
      expect(await human.ask('Three')).toBe('one "line"')
    })
  })
})

test('a text that ends with a backslash arrives at the daemon', async () => {
  using api = startApi(() => 'In the folder\nC:\\')
  await withDaemon(echoBrain, 'dash', api.url, async ({ human }) => {
    expect(await human.ask('Where?')).toBe('In the folder\nC:\\')
  })
})
