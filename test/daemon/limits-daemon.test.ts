/** A limit ended the run of a message: whoever asked hears which one, and what to raise. */

import { expect, test } from 'bun:test'
import { daemon, person, stopping } from '../support/daemon.ts'
import { call, home, scripted } from '../support/turns.ts'

test.each([
  ['max_tool_rounds = 1', /^\[limit reached: the limit of 1 tool rounds is reached; raise limits\.max_tool_rounds/],
  ['max_tool_rounds = 9\nmax_same_results = 2', /^\[limit reached: the model repeats itself: .*raise limits\.max_same_results\]$/],
  ['max_run_seconds = 0.4', /^\[limit reached: the run took longer than limits\.max_run_seconds \(0\.4 s\)\]$/],
])('%j', async (limit, said) => {
  using at = home(`\n[limits]\n${limit}\n`)
  const looking = Array.from({ length: 9 }, () => ({ ...call('file_list', { path: '.' }), delay_ms: 150 }))
  await using agent = stopping(await daemon(at, [], scripted(at, looking)))
  await using ann = await person(agent.dir)
  expect(await ann.ask('go on')).toMatch(said)
})
