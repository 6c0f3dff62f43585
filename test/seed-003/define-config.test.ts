/** The listing of `.plaited/config.ts`, word for word, read by the program itself, and the shape of an MCP server. */

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { type BraidClawConfig, defineConfig, type MCPServerConfig } from '../../src/library/config.ts'
import { nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

const listing = `import { defineConfig } from 'plaited/agent'

export default defineConfig({
  agent: {
    name: 'my-project-agent',
    model: 'functiongemma',
  },

  // MCP servers
  mcp: {
    servers: [
      {
        id: 'github',
        name: 'GitHub MCP',
        transport: 'http',
        url: 'https://mcp.github.com',
      },
    ],
  },

  // Skills
  skills: {
    root: '.plaited/skills',
  },

  // Rules
  rules: {
    root: 'AGENTS.md',
  },

  // Sandbox (wraps agent)
  sandbox: {
    enabled: process.env.NODE_ENV === 'production',
    security: {
      allowWrite: ['./src', './tests', './.plaited'],
      denyRead: ['~/.ssh', '~/.aws', '.env'],
      allowedDomains: ['api.github.com'],
    },
    limits: {
      timeout: 8 * 60 * 60 * 1000, // 8 hours
      memory: 4 * 1024 * 1024 * 1024, // 4GB
    },
  },
})
`

type Listed = { id: string; name: string; transport: 'http' | 'stdio'; url?: string; command?: string[] }

test('defineConfig returns what it is given, and a server has the members of the listing', () => {
  const servers: MCPServerConfig[] = [
    { id: 'github', name: 'GitHub MCP', transport: 'http', url: 'https://mcp.github.com', auth: { type: 'bearer' } },
    { id: 'files', name: 'Files', transport: 'stdio', command: ['mcp-files', '.'] },
  ]
  const listed: Listed[] = servers
  const config: BraidClawConfig = defineConfig({ agent: { name: 'a' }, mcp: { servers } })
  expect(config.mcp?.servers).toBe(servers)
  expect(listed.length).toBe(2)
  // @ts-expect-error: a member that the shape does not have
  defineConfig({ agents: {} })
})

test.if(needs('bwrap'))('the listing is refused before the folder is trusted, and holds afterwards', async () => {
  using home = nest()
  home.file('.plaited/config.ts', listing)
  const path = join(home.workspace, '.plaited/config.ts')
  const before = await home.run(['config', 'validate'], { cwd: home.workspace })
  expect(before.stderr).toContain(`${path} is ignored: this folder is not trusted`)
  await home.run(['trust', home.workspace])
  const validated = await home.run(['config', 'validate'], { cwd: home.workspace })
  expect(validated.stdout).toStartWith(`${path} is valid\n`)
  const idle = ['agent.name (', 'skills.root (not supported yet)']
  for (const what of idle) expect(validated.stderr).toContain(what)
  expect(validated.stderr).not.toContain('sandbox.')
  const shown = async (mode: string) =>
    (await home.run(['config', 'show', '--origin'], { cwd: home.workspace, env: { NODE_ENV: mode } })).stdout
  const [development, production] = [await shown('development'), await shown('production')]
  for (const text of [development, production]) expect(text).toContain(`default_model = "functiongemma"  # project: ${path}`)
  expect(development).not.toContain('max_run_seconds = 28800')
  expect(production).toContain(`max_run_seconds = 28800  # project: ${path}`)
  expect(production).toContain(`"${home.workspace}/.env"`)
  expect((await home.run(['doctor'], { cwd: home.workspace })).stdout).toContain(`${path}: valid`)
})

test.if(needs('bwrap'))('what is wrong with it ends each command, all at once', async () => {
  using home = nest()
  home.file('braidclaw.config.ts', listing.replace('model:', 'modle:').replace("'github'", '7').replace('timeout: 8', "timeout: '8h' ?? 8"))
  await home.run(['trust', home.workspace])
  const { code, stderr } = await home.run(['agent', '-m', 'hello'], { cwd: home.workspace })
  expect(code).toBe(1)
  expect(stderr).toContain('agent: Unrecognized key: "modle"; did you mean "model"?')
  expect(stderr).toContain('mcp.servers[0].id: Invalid input: expected string, received number; found 7')
  expect(stderr).toContain('sandbox.limits.timeout: Invalid input: expected number, received string; found "8h"')
})
