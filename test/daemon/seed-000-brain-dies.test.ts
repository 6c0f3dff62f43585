/** A brain that the daemon keeps running and that dies with a question: it is asked again once, and then everybody is told at once. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { daemon, historyOf, person, stopping } from '../support/daemon.ts'
import { script } from '../support/planck-scripts.ts'

const noTools = [
  '--claw',
  'fifo',
  '--bridge',
  'claw=while read -r _; do printf "[]\\n\\n"; done <$PLANCKCLAW_FIFOS/claw_in >$PLANCKCLAW_FIFOS/claw_out',
]

/** Reads a question, counts it, and does with it what is said. */
const brain = (then: string) => `#!/bin/sh
while :; do
  question=
  while IFS= read -r line && [ -n "$line" ]; do question=$question$line; done < "$PLANCKCLAW_FIFOS/brain_in"
  [ -n "$question" ] || continue
  echo "$question" >> asked
  ${then}
  printf '{"content":[{"type":"text","text":"answer %s"}],"stop_reason":"end_turn"}\\n\\n' "$(wc -l < asked)" > "$PLANCKCLAW_FIFOS/brain_out"
done
`

test('on its first question only: the person hears the answer, and nothing else', async () => {
  using at = nest()
  const bridge = script(join(at.dir, 'brain.sh'), brain('[ -e died ] || { touch died; kill -9 $$; }'))
  await using agent = stopping(await daemon(at, ['--bridge', `brain=${bridge}`, ...noTools], { cwd: at.dir }))
  await using me = await person(agent.dir)
  const began = performance.now()
  expect(await me.ask('Hello')).toBe('answer 2')
  expect(performance.now() - began).toBeLessThan(10_000)
  expect(historyOf(at)).toEqual(['Hello', 'answer 2'])
  expect(existsSync(join(at.dir, 'died'))).toBe(true)
})

test('on every question of one person: that one is told at once, and the queue behind goes on', async () => {
  using at = nest()
  const bridge = script(join(at.dir, 'brain.sh'), brain('case $question in *poison*) exit 3 ;; esac'))
  await using agent = stopping(await daemon(at, ['--bridge', `brain=${bridge}`, ...noTools], { cwd: at.dir }))
  await using me = await person(agent.dir)
  await me.say('poison', 'a')
  await me.say('Hello', 'b')
  await me.say('Good day', 'c')
  const began = performance.now()
  expect(await me.hear()).toEqual({ channel: 'a', text: "I'm temporarily unavailable." })
  expect(performance.now() - began).toBeLessThan(10_000)
  expect([await me.hear(), await me.hear()].map(({ channel, text }) => [channel, text.slice(0, 6)])).toEqual([
    ['b', 'answer'],
    ['c', 'answer'],
  ])
  const asked = readFileSync(join(at.dir, 'asked'), 'utf8').split('\n')
  expect(asked.filter((question) => question.includes('poison'))).toHaveLength(2)
  expect(historyOf(at).filter((_, n) => n % 2 === 0)).toEqual(['Hello', 'Good day'])
  await agent.says("the brain's bridge ended during the question")
})

test('on every question: everybody is told, soon, also while it waits to be started again', async () => {
  using at = nest()
  const bridge = script(join(at.dir, 'brain.sh'), brain('exit 3'))
  await using agent = stopping(await daemon(at, ['--bridge', `brain=${bridge}`, ...noTools], { cwd: at.dir }))
  await using me = await person(agent.dir)
  const began = performance.now()
  for (const channel of ['a', 'b', 'c', 'd']) await me.say('Hello', channel)
  for (const channel of ['a', 'b', 'c', 'd']) expect(await me.hear()).toEqual({ channel, text: "I'm temporarily unavailable." })
  expect(performance.now() - began).toBeLessThan(20_000)
  expect(historyOf(at)).toEqual([])
})
