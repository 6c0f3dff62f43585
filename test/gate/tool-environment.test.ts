/** The environment of executable tools: an allow list, for all or for one; values are redacted wherever they come back. */

import { test as always, expect } from 'bun:test'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { call as called, calls, play, say } from '../filter/tool-loop/stage.ts'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, refused } from '../support/turns.ts'

const test = always.if(needs('bwrap'))
const key = 'wk-4711-not-for-you'
const vault = 'shared/secret+4711=='

/** Writes a tool that prints what it finds in its environment, and what it found when it was described. */
function tool(folder: string, name: string): void {
  mkdirSync(folder, { recursive: true })
  const description = `{"name":"${name}","description":"Key \${WEATHER_KEY-none}.","parameters":{"type":"object"}}`
  const body = `printf '%s|' "\${WEATHER_KEY-none}" "\${VAULT-none}" "\${STRANGER-none}" "\${SHELLCLAW_STUB-none}" "\${DATA_DIR-none}"`
  writeFileSync(join(folder, `${name}.sh`), `#!/bin/sh\nif [ "$1" = --describe ]; then cat <<J\n${description}\nJ\nexit; fi\n${body}\n`)
  chmodSync(join(folder, `${name}.sh`), 0o755)
}

const env = { WEATHER_KEY: key, VAULT: vault, STRANGER: 'stranger-0815-x', SHELLCLAW_STUB: '1', DATA_DIR: '/srv/weather/data' }

function stage(settings: string): Nest {
  const at = nest()
  at.config(`${minimumConfig}\n[tools]\n${settings}\n`)
  for (const name of ['weather', 'other']) tool(join(at.home, '.braidclaw/tools'), name)
  return at
}

const run = (at: Nest, words: readonly string[]) => at.run(['tool', 'run', ...words, '--approve-all-medium'], { env, through: alone })

test('a tool gets no variable that is not on the list, not even when it is described', async () => {
  using at = stage('')
  expect((await run(at, ['weather'])).stdout).toBe('none|none|none|1|none|\n')
  using listed = stage('env = ["WEATHER_KEY"]')
  const { stdout } = await listed.run(['tool', 'describe'], { env, through: alone })
  expect(stdout).toContain('Key none.')
  expect(stdout).not.toContain('WEATHER_KEY')
})

test('names that lead out of the sandbox, values, and the list of a project are refused', async () => {
  using at = stage('')
  for (const name of ['LD_PRELOAD', 'PATH', 'weather:LD_LIBRARY_PATH', 'HOME', 'BASH_ENV', 'GIT_DIR', 'A=b', 'a b', '', ':X'])
    refused(await run(at, ['weather', '--tool-env', name]), 2, 'must be NAME or TOOL:NAME of a variable')
  mkdirSync(join(at.workspace, '.braidclaw'))
  writeFileSync(join(at.workspace, '.braidclaw/config.toml'), '[tools]\nenv = ["WEATHER_KEY"]\n')
  await at.run(['trust', at.workspace])
  const { code, stderr } = await run(at, ['weather'])
  expect([code, stderr.includes('tools.env')]).toEqual([1, true])
})

test('a variable for all reaches all, one for a tool that tool alone; the flag replaces the list for one call', async () => {
  using at = stage('env = ["DATA_DIR", "weather:WEATHER_KEY"]')
  expect((await run(at, ['other'])).stdout).toBe('none|none|none|none|/srv/weather/data|\n')
  expect((await run(at, ['weather'])).stdout).toBe('[redacted:WEATHER_KEY]|none|none|none|/srv/weather/data|\n')
  const { stdout } = await run(at, ['other', '--tool-env', 'other:VAULT', '--tool-env', 'SHELLCLAW_STUB'])
  expect(stdout).toBe('none|[redacted:VAULT]|none|1|none|\n')
})

test('what comes back of a value is redacted in the output, the receipts, the journal and the log', async () => {
  using at = stage('env = ["WEATHER_KEY", "VAULT"]')
  const { stdout, stderr } = await run(at, ['weather'])
  expect(stdout).toBe('[redacted:WEATHER_KEY]|[redacted:VAULT]|none|none|none|\n')
  await at.run(['memory', 'export'])
  const files = [...new Bun.Glob('**/*').scanSync({ cwd: join(at.home, '.braidclaw'), dot: true, absolute: true })]
  expect(files.length).toBeGreaterThan(3)
  for (const path of files) {
    const text = await Bun.file(path).text()
    expect({ path, leaked: [key, vault].filter((secret) => text.includes(secret)) }).toEqual({ path, leaked: [] })
  }
  expect(stderr).not.toContain(key)
})

always.if(needs('bwrap', 'jq', 'curl'))('the list holds in a loop of a script, and SHELLCLAW_STUB reaches a tool there', async () => {
  for (const args of [[], ['--tool-env', 'SHELLCLAW_STUB', '--tool-env', 'weather:DATA_DIR']]) {
    const { transcript } = await play(
      { backend: 'bash', wire: 'anthropic' },
      {
        replies: [calls(called('weather', {})), say('done')],
        tools: [{ name: 'weather' }],
        args: ['--approve-all-medium', ...args],
        env,
        before: async ({ dir }) => tool(join(dir, 'ops/skills'), 'weather'),
      },
    )
    expect(transcript[0]?.result).toBe(`none|none|none|1|${args.length > 0 ? '/srv/weather/data' : 'none'}|`)
  }
})
