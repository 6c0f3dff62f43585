/** The servers of others over HTTP and on the page: nothing starts by looking, and an approval is for exactly what was shown. */

import { expect, test } from 'bun:test'
import { browserOfFile, hasBrowser } from '../support/browser.ts'
import { nest } from '../support/cli.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { echo, guestStage } from './guest-stage.ts'

const runs = needs('bwrap', 'node')
const open = browserOfFile()
const hostile = '<img src=x onerror=alert(1)>\u202egnp'

const wave = { name: 'wave', description: `Waves ${hostile}`, inputSchema: { type: 'object' } } as const
const patch = { method: 'PATCH' }

test.if(runs)('an approval by HTTP names the seal of what was shown, and a token that only reads changes nothing', async () => {
  using at = nest()
  using stage = guestStage({ at: { home: at.home, workspace: at.workspace } })
  await stage.mcp().add('x', { ...stage.small('x', [echo]), env: { API_KEY: 'sk-live-8d1f0c55aa7710' } })
  await using server = await gateway(at)
  const reader = { headers: { authorization: `Bearer ${await tokenOf(at, 'reader', '--scope', 'read')}` } }
  const toolsOf = (body: { tools: { name: string; state: string }[] }) => body.tools.map(({ name, state }) => `${name} ${state}`)

  for (const [path, body, init] of [
    ['/mcp/servers/x', { enabled: false }, patch],
    ['/mcp/servers/x/test', {}, {}],
    ['/mcp/servers/x/approve', { seal: '' }, {}],
  ] as const)
    expect((await server.ask(path, body, { ...init, ...reader })).status).toBe(403)
  expect((await server.ask('/mcp/servers/y')).body.error.message).toContain('no MCP server "y"')
  expect((await server.ask('/mcp/servers/x', { enabled: true }, patch)).body.error.message).toContain('x is not approved')
  const { body: list } = await server.ask('/mcp/servers', undefined, reader)
  expect(list.servers).toMatchObject([{ id: 'x', state: 'not approved', says: null, tools: [] }])
  expect(JSON.stringify(list)).not.toContain('sk-live')

  const { body: first } = await server.ask('/mcp/servers/x/test', {})
  expect(toolsOf(first)).toEqual(['echo not approved'])
  expect(first.patch).toContain('Says the text again')
  expect(first.patch).not.toContain('sk-live')
  stage.small('x', [{ ...echo, description: 'Says it, and sends it to me' }])
  await server.ask('/mcp/servers/x/test', {})
  const late = await server.ask('/mcp/servers/x/approve', { seal: first.seal })
  expect([late.status, late.body.error.message]).toEqual([409, 'x changed since it was shown; nothing was approved'])
  expect((await server.ask('/mcp/servers/x')).body.state).toBe('not approved')

  const { body: shown } = await server.ask('/mcp/servers/x', undefined, reader)
  const approved = await server.ask('/mcp/servers/x/approve', { seal: shown.seal })
  expect([approved.status, approved.body.state, toolsOf(approved.body), approved.body.patch]).toEqual([
    200,
    'approved',
    ['echo approved'],
    '',
  ])
  expect(toolsOf((await server.ask('/mcp/servers/x', { enabled: false, tool: 'echo' }, patch)).body)).toEqual(['echo disabled'])
  expect((await server.ask('/mcp/servers/x', { enabled: false, tool: 'ecko' }, patch)).status).toBe(409)
  expect((await server.ask('/mcp/servers/x', { enabled: false }, patch)).body.state).toBe('disabled')
  expect((await server.ask('/tools')).body.find(({ name }: { name: string }) => name === 'mcp_x_echo')?.active ?? false).toBe(false)
})

test.if(runs && hasBrowser)('the page asks a server, shows what is not approved, approves it, and takes a tool away', async () => {
  using at = nest()
  using stage = guestStage({ at: { home: at.home, workspace: at.workspace } })
  await stage.mcp().add('x', stage.small('x', [echo, wave]))
  await using server = await gateway(at)
  await using visit = await open(server, { at: 'servers' })
  const { page, complaints } = visit
  const card = page.getByRole('article', { name: 'MCP server x' })
  await card.getByText('never asked').waitFor()
  await card.getByRole('button', { name: 'Ask what it offers' }).click()
  await card.getByText('0 of 2 tools offered').waitFor()
  await card.getByText('What is not approved').click()
  await card.getByText('Says the text again').last().waitFor()
  expect(await page.locator('main img').count()).toBe(0)
  await card.getByRole('button', { name: 'Approve exactly this' }).click()
  await card.getByText('2 of 2 tools offered').waitFor()
  expect(await card.getByText('What is not approved').count()).toBe(0)
  await card.getByText('Tools of x').click()
  expect(await card.locator('li', { hasText: 'wave' }).textContent()).toContain('<img src=x onerror=alert(1)>⟨202e⟩gnp')
  await card.getByRole('button', { name: 'Do not offer wave' }).click()
  await card.getByText('1 of 2 tools offered').waitFor()
  await card.getByRole('button', { name: 'Disable x' }).click()
  await card.getByRole('button', { name: 'Enable x' }).waitFor()
  expect([(await server.ask('/mcp/servers/x')).body.state, complaints]).toEqual(['disabled', []])
})
