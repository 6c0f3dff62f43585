import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHostContext } from '../../host/setup/context.ts'
import { loadSetup } from '../../host/setup/setup.ts'
import type { ToolDeps } from '../../host/toolset/contract.ts'
import { createFifos } from '../../service/fifo/fifo-folder.ts'
import { openLines } from '../../service/fifo/fifo-reader.ts'
import { openWriter } from '../../service/fifo/fifo-writer.ts'
import { channelRows } from '../list.ts'
import { assignRoles, type FifoRoles } from './fifo-roles.ts'

/** A home with this configuration and six FIFOs. */
async function stage(toml = '', env: { readonly [name: string]: string } = {}) {
  const home = mkdtempSync(join(tmpdir(), 'braidclaw-roles-'))
  const dir = join(home, 'fifos')
  mkdirSync(join(home, '.braidclaw'))
  writeFileSync(join(home, '.braidclaw/config.toml'), `workspace_dir = "${home}"\n${toml}`)
  await createFifos(dir)
  const context = createHostContext({ env: { HOME: home, BRAIDCLAW_LOG: 'off', ...env }, channels: channelRows, say: () => {} })
  const setup = loadSetup({ ...context, cwd: home })
  const stopping = new AbortController()
  const cast = (more: Partial<FifoRoles> = {}) =>
    assignRoles(setup, { dir, brain: undefined, claw: 'inside', model: undefined, ...more }, stopping.signal)
  return { dir, cast, stop: () => stopping.abort(), [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

const fifo = (more = '') => `default_provider = "b"\n[providers.models.b]\nkind = "fifo"\nmodel = "local-model"\n${more}`
const far = 'default_provider = "a"\n[providers.models.a]\nkind = "anthropic"\nmodel = "claude-x"\n'
const none = (): never => {
  throw new Error('nothing is spawned here')
}
const deps: ToolDeps = { spawn: none, sandboxOn: none, closed: new AbortController().signal, env: {}, maxOutputBytes: 1000 }

test('a brain on the FIFOs is asked for the model of the vendor it imitates, never for one of another', async () => {
  using plain = await stage()
  const asked = async (at: Awaited<ReturnType<typeof stage>>, more: Partial<FifoRoles> = {}) => {
    const { setup, provider, close } = await at.cast({ brain: 'fifo', ...more })
    await close()
    return [provider.name, setup.config.defaultModel]
  }
  expect(await asked(plain)).toEqual(['fifo', 'claude-haiku-4-5-20251001'])
  expect(await asked(plain, { model: 'mock' })).toEqual(['fifo', 'mock'])
  using vendor = await stage(far)
  expect(await asked(vendor)).toEqual(['fifo', 'claude-x'])
})

test('PLANCKCLAW_MODEL names the model of a brain on the FIFOs where no configuration and no flag does', async () => {
  const env = { PLANCKCLAW_MODEL: 'small-model' }
  const modelOf = async (at: Awaited<ReturnType<typeof stage>>, model?: string) => {
    const { setup, close } = await at.cast({ brain: 'fifo', model })
    await close()
    return setup.config.defaultModel
  }
  using plain = await stage('', env)
  expect(await modelOf(plain)).toBe('small-model')
  expect(await modelOf(plain, 'mock')).toBe('mock')
  using vendor = await stage(far, env)
  expect(await modelOf(vendor)).toBe('claude-x')
})

test('a provider of kind "fifo" means our own folder, unless it names another', async () => {
  using at = await stage(fifo())
  const own = await at.cast()
  expect([own.provider.name, own.setup.config.defaultModel, own.described]).toEqual([
    'fifo',
    'local-model',
    'interact: fifo; brain: fifo; claw: inside',
  ])
  await own.close()
  using other = await stage(fifo('dir = "/nowhere/fifos"\n'))
  expect(await other.cast().catch((error: Error) => error.message)).toContain('/nowhere/fifos')
})

test('inside means the usual tools; on the FIFOs alone none of ours', async () => {
  using at = await stage()
  expect((await at.cast()).tools).toBeUndefined()
  const alone = await at.cast({ claw: 'fifo' })
  expect(alone.tools?.builtIn).toEqual([])
  await alone.close()
  const both = await at.cast({ claw: 'both' })
  expect(both.tools?.builtIn).toBe('all')
  await both.close()
})

test('the first message waits for a claw that starts late, and for none when the daemon stops', async () => {
  using at = await stage()
  const { tools, close } = await at.cast({ claw: 'fifo' })
  const find = async () => (await tools?.more?.(deps))?.map(({ name }) => name)
  const asked = find()
  // Longer than both words of the discovery and every later message may take.
  await Bun.sleep(3_000)
  const leaving = new AbortController()
  const lines = openLines(join(at.dir, 'claw_in'), { signal: leaving.signal })
  const writer = openWriter(join(at.dir, 'claw_out'))
  expect((await lines.next()).value).toMatchObject({ ok: true, text: expect.stringMatching(/list_tools/) })
  await writer.write('[{"name":"greet","description":"Greets."}]\n\n', { timeoutMs: 1000 })
  expect(await asked).toEqual(['greet'])
  leaving.abort()
  writer.close()
  await close()

  const other = await at.cast({ claw: 'fifo' })
  const unanswered = other.tools?.more?.(deps)
  at.stop()
  expect(await unanswered).toEqual([])
  await other.close()
})

test('a claw that was silent holds up no later message; its late list is there for the next', async () => {
  using at = await stage('[limits]\ntool_timeout_s = 1\n')
  const { tools, close } = await at.cast({ claw: 'fifo' })
  const find = async () => (await tools?.more?.(deps))?.map(({ name }) => name)
  expect(await find()).toEqual([])
  const leaving = new AbortController()
  const lines = openLines(join(at.dir, 'claw_in'), { signal: leaving.signal })
  const writer = openWriter(join(at.dir, 'claw_out'))
  const asked = find()
  expect((await lines.next()).value).toEqual({ ok: true, text: '__list_tools__' })
  expect(await asked).toEqual([])
  await writer.write('[{"name":"greet","description":"Greets."}]\n\n', { timeoutMs: 1000 })
  await Bun.sleep(50)
  const again = find()
  expect((await lines.next()).value).toEqual({ ok: true, text: '__list_tools__' })
  await writer.write('[{"name":"greet","description":"Greets."}]\n\n', { timeoutMs: 1000 })
  expect(await again).toEqual(['greet'])
  leaving.abort()
  writer.close()
  await close()
})
