/** The page about `mcp serve`: its script, its configuration files, its table and its advice hold. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { shell } from '../support/shell.ts'
import { home } from '../support/turns.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/mcp-server.md'), 'utf8')
const [, script = ''] = /```sh\n(braidclaw mcp serve <<'END'\n[\s\S]*?END)\n```/.exec(page) ?? []
const [, config = ''] = /```json\n([\s\S]*?)\n```/.exec(page) ?? []

test('the script prints an answer to each of its lines', async () => {
  using at = home()
  const { code, stdout } = await shell(at, script)
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect([code, answers.map(({ id, error }) => [id, error])]).toEqual([
    0,
    [
      [1, undefined],
      [2, undefined],
      [3, undefined],
    ],
  ])
  expect(answers[1].result.tools.map(({ name }: { name: string }) => name)).toContain('agent_turn')
  expect(answers[2].result.content[0].text).toContain('timezone')
})

test('--help shows the same configuration as the page', async () => {
  using at = home()
  const { stdout } = await at.run(['mcp', 'serve', '--help'])
  const [, shown = ''] = /(\{"mcpServers".*\})/.exec(stdout) ?? []
  expect(JSON.parse(shown)).toEqual(JSON.parse(config))
  expect(JSON.parse(config).mcpServers.braidclaw).toEqual({ command: 'braidclaw', args: ['mcp', 'serve'] })
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
})
