/** `onboard` in a terminal, and its refusal without one. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { minimumConfig, type Nest, nest } from './support/cli.ts'

const config = (at: Nest) => join(at.home, '.braidclaw/config.toml')
const down = '\u001b[B'
const env = { OPENAI_API_KEY: 'sk-planted-secret-000111222', OLLAMA_HOST: '127.0.0.1' }

test('asks for the folder and the model, and sets up what was chosen', async () => {
  using at = nest()
  const { code, stdout } = await at.terminal(
    ['onboard'],
    [
      ['Which folder', '\r'],
      ['Which model', down],
      ['\u25cf', '\r'],
    ],
    { env, cwd: at.dir },
  )
  expect(code).toBe(0)
  expect(stdout).toContain('Ready.')
  const written = Bun.TOML.parse(readFileSync(config(at), 'utf8'))
  expect(written).toMatchObject({ workspace_dir: join(at.home, 'braidclaw-workspace'), default_provider: 'ollama' })
  expect(existsSync(join(at.dir, '~'))).toBe(false)
  expect(readFileSync(config(at), 'utf8')).not.toContain('planted')
  expect((await at.run(['config', 'validate'])).code).toBe(0)
})

test('without any key only the offline helper is offered', async () => {
  using at = nest()
  const { code, stdout } = await at.terminal(
    ['onboard'],
    [
      ['Which folder', '\r'],
      ['offline helper', '\r'],
    ],
    { cwd: at.dir },
  )
  expect([code, stdout.includes('openai:')]).toEqual([0, false])
  expect((await at.run(['agent', '-m', 'hello'])).code).toBe(0)
})

test.each(['\u0003', '\u001b'])('%j changes nothing', async (key) => {
  using at = nest()
  const { code, stdout } = await at.terminal(['onboard'], [['Which folder', key]])
  expect(code).toBe(130)
  expect(stdout).toContain('Nothing was changed.')
  expect(existsSync(join(at.home, '.braidclaw'))).toBe(false)
})

test('an existing configuration is never asked about and never overwritten', async () => {
  using at = nest()
  at.config(minimumConfig)
  const { code, stdout } = await at.terminal(['onboard'], [])
  expect(code).toBe(1)
  expect(stdout).toContain('exists and is never overwritten')
  expect(readFileSync(config(at), 'utf8')).toBe(minimumConfig)
})

test('without a terminal it says what to use instead', async () => {
  using at = nest()
  const refused = { code: 2, stdout: '', stderr: 'error: onboard asks questions and needs a terminal; use "braidclaw init" in scripts\n' }
  expect(await at.run(['onboard'])).toEqual(refused)
  expect(await at.run(['onboard'], { stdin: '\n\n' })).toEqual(refused)
})

test('init expands ~, keeps what is there, and names the proposed provider only when it wrote it', async () => {
  using at = nest()
  const first = await at.run(['init', '--workspace', '~/elsewhere'], { env, cwd: at.dir })
  expect([first.code, existsSync(join(at.home, 'elsewhere'))]).toEqual([0, true])
  expect(first.stderr).toContain('provider test openai')
  const second = await at.run(['init'], { env })
  expect([second.code, second.stderr]).toEqual([0, ''])
  expect(second.stdout).toContain('kept      config')
})
