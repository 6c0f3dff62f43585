/** The sections of docs/library.md about own tools, stdio, transports and Node, run as they stand there. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readLine } from '../../src/library/stdio/session.ts'
import { executable, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

const root = join(import.meta.dir, '../..')
const page = readFileSync(join(root, 'docs/library.md'), 'utf8')
const sectionOf = (title: string) => page.split(`## ${title}\n`)[1]?.split('\n## ')[0] ?? ''
const blocksOf = (title: string) => [...sectionOf(title).matchAll(/```\w*\n([\s\S]*?)```/g)].map(([, text = '']) => text)

const dir = mkdtempSync(join(tmpdir(), 'braidclaw-library-docs-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
const entries: { readonly [name: string]: string } = {
  node: 'src/library/remote/agent.ts',
  transports: 'src/library/stdio/transports.ts',
  sandbox: 'src/library/remote/sandbox.ts',
}
beforeAll(async () => {
  for (const [name, path] of Object.entries(entries)) {
    const built = await Bun.build({ entrypoints: [join(root, path)], target: 'node', format: 'esm' })
    writeFileSync(join(dir, `${name}.mjs`), (await built.outputs[0]?.text()) ?? '')
  }
})

async function printed(program: string, under: 'node' | 'bun'): Promise<string> {
  using at = nest()
  mkdirSync(join(at.workspace, 'src'))
  const file = join(at.dir, 'program.mjs')
  const agent = under === 'node' ? join(dir, 'node.mjs') : join(root, 'src/agent.ts')
  const code = program
    .replace("'braidclaw'", JSON.stringify(agent))
    .replace("'braidclaw/sandbox'", JSON.stringify(join(dir, 'sandbox.mjs')))
    .replace("'braidclaw/transports'", JSON.stringify(join(dir, 'transports.mjs')))
  writeFileSync(file, code.replace("'zod'", JSON.stringify(join(root, 'node_modules/zod/index.js'))))
  const argv = under === 'node' ? ['node', file] : [process.execPath, '--config=/dev/null', '--no-env-file', '--no-install', file]
  const env = { ...at.env, BRAIDCLAW_EXECUTABLE: executable }
  const child = Bun.spawn(argv, { cwd: at.workspace, env, stdout: 'pipe', stderr: 'pipe' })
  const late = setTimeout(() => child.kill('SIGKILL'), 20_000)
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  clearTimeout(late)
  expect(stderr).toBe('')
  return stdout
}

describe.each(needs('node') ? (['bun', 'node'] as const) : (['bun'] as const))('on %s', (under) => {
  test.each(['Tools of your program', 'Transports'])('the program of "%s" prints what the page says', async (title) => {
    const [program = '', output] = blocksOf(title)
    expect(await printed(program, under)).toBe(output ?? 'nothing')
  })

  test.if(needs('bwrap'))('the program of "A whole agent in a sandbox" prints what the page says', async () => {
    const [program = '', output] = blocksOf('A whole agent in a sandbox')
    expect(await printed(program, under)).toBe(output ?? 'nothing')
  })
})

test.if(needs('jq'))('the command of "Events over stdio" prints what the page says', async () => {
  using at = nest()
  at.file('src/a.ts', '')
  const [, command = '', output] = /^\$ (.*)\n([\s\S]*)/.exec(blocksOf('Events over stdio')[0] ?? '') ?? []
  const fixture = at.fixture([{ tool_calls: [{ name: 'file_list', arguments: { path: 'src' } }] }, { text: 'a.ts', chunks: 0 }])
  const env = { ...at.env, BRAIDCLAW_MOCK_FIXTURE: fixture }
  const child = Bun.spawn(['/bin/bash', '-c', command.replace('braidclaw', executable)], {
    cwd: at.workspace,
    env,
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const types = (await child.stdout.text()).split('\n').filter((type, place, all) => type !== 'text' || all[place - 1] !== 'text')
  expect(types.join('\n')).toBe(output ?? 'nothing')
})

test('every line of the table is a line that the peer reads', () => {
  const lines = [...sectionOf('Events over stdio').matchAll(/^\| `\{(?:id, )?"(\w+)"/gm)].map(([, verb]) => verb)
  expect(lines).toEqual(['hello', 'prompt', 'approve', 'changes', 'cancel', 'credit', 'result', 'piece', 'close'])
  for (const verb of [...lines, 'mode']) expect(JSON.stringify(readLine(`{"id":"1","${verb}":[]}`, true))).not.toContain('is not known')
})
