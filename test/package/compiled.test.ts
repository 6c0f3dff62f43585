import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile } from '../../scripts/compile.ts'
import { minimumConfig, nest } from '../support/cli.ts'

const root = join(import.meta.dir, '../..')
const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-compiled-'))
/** In a run of all tests this one is there already, and the other test files drive it. */
/** A run of all tests has compiled it already; its acceptance files drive that one, and in the deep tier the one from source too. */
const given = process.env.BRAIDCLAW_TEST_BINARY
const executable = given || join(scratch, 'braidclaw')

beforeAll(async () => {
  if (!given) expect(await compile({ entry: join(root, 'src/main.ts'), outfile: executable })).toMatchObject({ ok: true })
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

describe('the configuration of the compiled executable', () => {
  test('means the same in every run: the limit of a reply, and the warning that a budget without a price cannot hold', async () => {
    using at = nest()
    const reply = { choices: [{ message: { role: 'assistant', content: 'x'.repeat(5000) }, finish_reason: 'stop' }] }
    await using server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json(reply) })
    const provider = `kind = "openai-compatible"\nbase_url = "${server.url}v1"\nmodel = "m"\nstream = false\nmax_retries = 0`
    at.config(
      `${minimumConfig.replace(/default_provider = .*\n/, 'default_provider = "near"\n')}[limits]\nmax_response_bytes = 1024\nmax_run_usd = 1\n[providers.models.near]\n${provider}\n`,
    )
    for (const _ of ['first', 'second']) {
      const child = Bun.spawn([executable, 'agent', '-m', 'hello'], { cwd: at.workspace, env: at.env, stdio: ['ignore', 'pipe', 'pipe'] })
      const [stderr, code] = await Promise.all([child.stderr.text(), child.exited])
      expect(stderr).toContain('larger than max_response_bytes = 1024')
      expect(stderr).toContain('limits.max_run_usd cannot hold: [providers.models.near] has no price_input and price_output')
      expect(code).toBe(8)
    }
    expect(readdirSync(join(at.home, '.braidclaw')).filter((name) => name.startsWith('config'))).toEqual(['config.toml'])
  })
})

describe('the environment of another tool does not turn the executable into Bun', () => {
  const canary = join(scratch, 'canary')
  const foreign = join(scratch, 'foreign.mjs')
  writeFileSync(foreign, `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(canary)}, '')\nconsole.log('foreign')\n`)
  test.each([
    ['BUN_BE_BUN', '1', [foreign]],
    ['BUN_BE_BUN', '1', ['-e', `await Bun.write(${JSON.stringify(canary)}, '')`]],
    ['BUN_OPTIONS', `--preload ${foreign}`, ['--version']],
    ['BUN_INSPECT', 'ws://127.0.0.1:0/x?break=1', ['--version']],
    ['BUN_INSPECT_PRELOAD', foreign, ['--version']],
    ['NODE_OPTIONS', `--require ${foreign}`, ['--version']],
  ])('%s=%s', async (name, value, args) => {
    using at = nest()
    const env = { ...at.env, [name]: value }
    const child = Bun.spawn([executable, ...args], { cwd: at.workspace, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 15_000 })
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    expect([existsSync(canary), child.signalCode, `${stdout}${stderr}`]).toEqual([false, null, expect.not.stringContaining('foreign\n')])
  })
})
