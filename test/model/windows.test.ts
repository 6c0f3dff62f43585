/** What processes of one home learn of the window of a model, through the real executable. */

import { expect, test } from 'bun:test'
import { nest } from '../support/cli.ts'
import { callOf, startWindowServer, type WindowServerOptions } from '../support/window-server.ts'

const server = (options: Partial<WindowServerOptions> = {}) =>
  startWindowServer({
    window: 8192,
    other: (path) => (path === '/props' ? Response.json({ default_generation_settings: { n_ctx: 8192 } }) : undefined),
    ...options,
  })

function homeOf(url: string, more = '') {
  const at = nest()
  at.config(
    `default_provider = "near"\ndefault_model = "m-1"\n[providers.models.near]\nkind = "openai-compatible"\nbase_url = "${url}"\nmodel = "m-1"\nmax_retries = 0\n${more}`,
  )
  const agent = async (message: string, ...args: string[]) => {
    const { code, stderr } = await at.run(['agent', ...args, '-m', message])
    expect([code, stderr]).toEqual([0, expect.any(String)])
  }
  const window = async () => {
    const { stdout } = await at.run(['doctor', '--json'])
    const all: { readonly what: string; readonly says: string; readonly state: string }[] = JSON.parse(stdout)
    return all.filter(({ what }) => what === 'window').map(({ state, says }) => `${state} ${says}`)
  }
  return { ...at, agent, window }
}

test('a local server is asked once for a home and a model, and doctor says what is known', async () => {
  using far = server()
  using at = homeOf(far.url)
  expect(await at.window()).toEqual(['note near/m-1: 32,768 tokens (assumed)'])
  await at.agent('hello')
  await at.agent('go on', '-c')
  await at.agent('go on', '-c')
  expect(far.others.filter((path) => path === '/props')).toHaveLength(1)
  expect(await at.window()).toEqual([
    expect.stringMatching(/^ok near\/m-1: 8,192 tokens \(its server says so\); about \d\.\d bytes of prose a token$/),
  ])
})

test('a window that is configured is not asked for', async () => {
  using far = server({ reply: (_, n) => (n === 0 ? callOf('call_1', 'file_list', { path: '.' }) : 'Done.') })
  using at = homeOf(far.url, 'context_tokens = 16384\n')
  await at.agent('hello')
  await at.agent('go on', '-c')
  expect([far.others, far.requests.length]).toEqual([[], 3])
  expect(await at.window()).toEqual(['ok near/m-1: 16,384 tokens ([providers.models.near])'])
})
