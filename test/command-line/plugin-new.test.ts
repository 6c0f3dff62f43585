/** `plugin new` writes a plugin that works as it stands, in three languages, and `plugin test` says what does not. */

import { describe, expect, test } from 'bun:test'
import { appendFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

const languages = [
  ['sh', test.if(needs('jq'))],
  ['python', test.if(needs('python3'))],
  ['typescript', test.if(needs('node'))],
] as const

describe.each(languages)('in %s', (lang, tried) => {
  tried('new, test, install, run', async () => {
    using at = nest()
    at.config('\n')
    const sandbox = needs('bwrap') ? 'auto' : 'none'
    const made = await at.run(['plugin', 'new', 'shout', '--lang', lang])
    const folder = join(at.workspace, 'shout')
    expect([made.code, made.stdout]).toEqual([0, `${folder}\n`])
    const tested = await at.run(['plugin', 'test', 'shout', '--sandbox', sandbox])
    expect([tested.code, tested.stdout, tested.stderr]).toEqual([0, 'ok     shout\n', ''])
    expect((await at.run(['plugin', 'list'])).stdout).toBe('')
    await at.run(['plugin', 'install', 'shout', '--yes'])
    const ran = await at.run(['tool', 'run', 'shout', '--auto', '--sandbox', sandbox, '--json', '{"text":"hi"}'])
    expect([ran.code, ran.stdout]).toEqual([0, 'HI\n'])
    expect((await at.run(['plugin', 'new', 'shout'])).stderr).toContain('is there already; nothing was written')
  })
})

test('a test that fails ends with 1 and says what came instead; the real workspace is not touched', async () => {
  using at = nest()
  at.config('\n')
  await at.run(['plugin', 'new', 'shout'])
  const folder = join(at.workspace, 'shout')
  const run = () => at.run(['plugin', 'test', 'shout', '--sandbox', 'none'])
  writeFileSync(join(folder, 'shout.sh'), '#!/bin/sh\ntouch made-by-test\necho \'"hello"\'\n')
  appendFileSync(join(folder, 'manifest.toml'), '[permissions]\nfiles = "write"\n')
  const failed = await run()
  expect([failed.code, failed.stdout]).toEqual([1, 'failed shout: expected "HELLO", got "hello"\n'])
  expect([
    existsSync(join(at.workspace, 'made-by-test')),
    readdirSync(join(at.home, '.braidclaw/run')).filter((name) => name.startsWith('plugin')),
  ]).toEqual([false, []])
  appendFileSync(join(folder, 'manifest.toml'), '[[tests]]\ntool = "shoot"\noutput = 1\n')
  const wrong = await run()
  expect(wrong.code).toBe(1)
  for (const says of [
    'tests.1.tool is not a tool of this plugin; did you mean "shout"?',
    'tests.1.output is a text',
    'tests.1.arguments is a table',
  ])
    expect(wrong.stderr).toContain(says)
  expect((await at.run(['plugin', 'new', '../x'])).code).toBe(2)
})
