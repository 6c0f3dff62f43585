import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile } from '../scripts/compile.ts'
import { minimumConfig, nest } from './support/cli.ts'

const root = join(import.meta.dir, '..')
const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-compiled-'))
const executable = join(scratch, 'braidclaw')

beforeAll(async () => {
  expect(await compile({ entry: join(root, 'src/main.ts'), outfile: executable })).toMatchObject({ ok: true })
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** A test file once more, with the compiled executable as `braidclaw`. */
async function again(file: string) {
  const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', 'test', '--timeout=60000', `./${file}`], {
    cwd: root,
    env: { ...process.env, BRAIDCLAW_TEST_BINARY: executable },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  const said = `${stdout}${stderr}`
  // Those too that were left out for want of a program.
  const ran = Number(/Ran (\d+) tests/.exec(said)?.[1] ?? 0)
  return { code, ran, failures: code === 0 ? '' : said }
}

describe('the compiled executable passes the acceptance tests', () => {
  for (const file of [
    'test/seed-001.test.ts',
    'test/exit-codes.test.ts',
    'test/estop.test.ts',
    'test/seed-002.test.ts',
    'test/seed-000.test.ts',
    'test/secrets.test.ts',
  ])
    test(file, async () => {
      const { code, ran, failures } = await again(file)
      expect(failures).toBe('')
      expect(code).toBe(0)
      expect(ran).toBeGreaterThan(5)
    }, 120_000)
})

describe('the configuration it keeps between calls', () => {
  test('is written by the first turn, and a changed file, variable or kept file is noticed by the next', async () => {
    using at = nest()
    const replies = (text: string) => ({ BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text }]) })
    const run = (env: { readonly [name: string]: string }) =>
      Bun.spawn([executable, 'agent', '-m', 'hello'], { cwd: at.workspace, env: { ...at.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    const answer = async (env: { readonly [name: string]: string }) => {
      const child = run(env)
      const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
      return { stdout, stderr, code }
    }
    at.config(minimumConfig)
    const kept = join(at.home, '.braidclaw/config.kept')
    expect(await answer(replies('first'))).toMatchObject({ stdout: 'first\n', code: 0 })
    expect(existsSync(kept)).toBe(true)
    expect(await answer(replies('second'))).toMatchObject({ stdout: 'second\n', code: 0 })

    at.config(minimumConfig.replace('~/braidclaw-workspace', '~/nowhere'))
    const moved = await answer(replies('third'))
    expect(moved.code).toBe(1)
    expect(moved.stderr).toContain('nowhere')

    at.config(minimumConfig)
    writeFileSync(kept, readFileSync(kept, 'utf8').slice(0, 40))
    expect(await answer(replies('fourth'))).toMatchObject({ stdout: 'fourth\n', code: 0 })
  })

  test('means the same in every run: the limit of a reply, and the warning that a budget without a price cannot hold', async () => {
    using at = nest()
    const reply = { choices: [{ message: { role: 'assistant', content: 'x'.repeat(5000) }, finish_reason: 'stop' }] }
    await using server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json(reply) })
    const provider = `kind = "openai-compatible"\nbase_url = "${server.url}v1"\nmodel = "m"\nstream = false\nmax_retries = 0`
    at.config(
      `${minimumConfig.replace(/default_provider = .*\n/, 'default_provider = "near"\n')}[limits]\nmax_response_bytes = 1024\nmax_run_usd = 1\n[providers.models.near]\n${provider}\n`,
    )
    for (const _ of ['first', 'kept']) {
      const child = Bun.spawn([executable, 'agent', '-m', 'hello'], { cwd: at.workspace, env: at.env, stdio: ['ignore', 'pipe', 'pipe'] })
      const [stderr, code] = await Promise.all([child.stderr.text(), child.exited])
      expect(stderr).toContain('larger than max_response_bytes = 1024')
      expect(stderr).toContain('limits.max_run_usd cannot hold: [providers.models.near] has no price_input and price_output')
      expect(code).toBe(8)
    }
    expect(existsSync(join(at.home, '.braidclaw/config.kept'))).toBe(true)
  })

  test('is not kept while it holds a secret: a key typed where a model belongs', async () => {
    using at = nest()
    at.config(minimumConfig)
    const kept = join(at.home, '.braidclaw/config.kept')
    const token = `ghp_${'x1y2z3'.repeat(5)}`
    const env = { ...at.env, GITHUB_TOKEN: token, BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text: 'fine' }]) }
    const run = (...more: string[]) => Bun.spawnSync([executable, 'agent', '-m', 'hello', ...more], { cwd: at.workspace, env }).exitCode
    expect(run('--model', `local/${token}`)).toBe(0)
    expect(existsSync(kept) && readFileSync(kept, 'utf8').includes(token)).toBe(false)
    expect(run()).toBe(0)
    expect(existsSync(kept)).toBe(true)
  })

  test('is not that of another build: the piece that asks for it has another name as soon as the loader is another', async () => {
    using at = nest()
    at.config(minimumConfig)
    const kept = join(at.home, '.braidclaw/config.kept')
    const env = { ...at.env, BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text: 'fine' }]) }
    const run = () => Bun.spawnSync([executable, 'agent', '-m', 'hello'], { cwd: at.workspace, env }).exitCode
    expect([run(), run()]).toEqual([0, 0])
    expect(readFileSync(kept, 'utf8').split('\n')).toHaveLength(3)

    const [one, same, other] = [await pieceThatAsks(''), await pieceThatAsks(''), await pieceThatAsks('globalThis.changed = true')]
    expect(one).toMatch(/-[a-z\d]{8}\.js$/)
    expect(same).toBe(one)
    expect(other).not.toBe(one)
  })
})

/** Its name, with the loader as it is and something more in it. */
async function pieceThatAsks(more: string): Promise<string> {
  const loader = join(root, 'src/config/load.ts')
  const plugin: Bun.BunPlugin = {
    name: 'another loader',
    setup: (build) =>
      void build.onLoad({ filter: /src\/config\/load\.ts$/ }, () => ({
        contents: `${readFileSync(loader, 'utf8')}\n${more}`,
        loader: 'ts',
      })),
  }
  const built = await Bun.build({ entrypoints: [join(root, 'src/main.ts')], target: 'bun', splitting: true, plugins: [plugin] })
  const texts = await Promise.all(built.outputs.map(async (output) => ({ path: output.path, text: await output.text() })))
  return texts.find(({ text }) => text.includes('/config.kept'))?.path ?? 'none'
}
