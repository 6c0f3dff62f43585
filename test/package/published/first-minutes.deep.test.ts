/** The first ten minutes with what is published, in an empty folder on Node alone: a skill and an MCP server, and a program that uses both. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../support/needs.ts'
import { notesServer } from '../../support/notes-server.ts'
import { chunk, done, startRaw, streamed } from '../../support/raw-server.ts'
import { installInProject, type Machine, machine, type Packages, packages } from './packages.ts'

const root = join(import.meta.dir, '../../..')
/** Returns the first block in this language after a heading. */
function documented(page: string, heading: string, language: string): string {
  const [, section = ''] = readFileSync(join(root, page), 'utf8').split(`${heading}\n`)
  return new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(section)?.[1] ?? ''
}

let made: Packages
let at: Machine
let project: string
beforeAll(async () => {
  made = await packages()
  at = machine(made.folder)
  project = installInProject(at, made.tarballs)
  writeFileSync(join(project, 'notes.mjs'), notesServer)
}, 300_000)
afterAll(() => made[Symbol.dispose]())

/** Runs lines of a page with the installed program. */
function shell(lines: string): string {
  const { code, stdout, stderr } = at.run(['sh', '-ec', `PATH=${project}/node_modules/.bin:$PATH\n${lines}`], { cwd: project })
  if (code !== 0) throw new Error(`${lines}\nended with ${code}: ${stderr}${stdout}`)
  return stdout
}

const calls = (name: string, input: object) =>
  `${chunk({ tool_calls: [{ index: 0, id: `call_${name}`, type: 'function', function: { name, arguments: JSON.stringify(input) } }] })}${chunk({}, 'tool_calls')}${done}`

test.if(needs('bwrap', 'node'))('the program of README, on Node alone, uses a documented skill and an approved server', async () => {
  const answers = [
    calls('skill', { name: 'word-count' }),
    calls('mcp_notes_add_note', { text: 'buy milk' }),
    `${chunk({ content: 'It is written down.' })}${chunk({}, 'stop')}${done}`,
  ]
  using model = startRaw(answers.map((answer) => streamed(answer)))
  const home = join(at.env.HOME ?? '', '.braidclaw')
  mkdirSync(home)
  writeFileSync(
    join(home, 'config.toml'),
    `default_model = "local"
[security]
allow_tools = ["mcp_notes_add_note"]
[providers.models.local]
kind = "openai-compatible"
model = "scripted"
base_url = "${model.url}"
`,
  )
  expect(shell(documented('docs/skills.md', '# Write a skill', 'sh'))).toContain('word-count')
  expect(shell(`braidclaw mcp add notes --folder ${project} --yes -- node ${project}/notes.mjs`)).toContain('approved: notes')
  expect(shell('braidclaw mcp list')).toContain('1 of 1 tool offered')

  const program = documented('README.md', '## As a library', 'ts').replace('/work/project', project)
  writeFileSync(join(project, 'program.mjs'), program)
  expect(at.run(['sh', '-c', 'command -v bun']).code).not.toBe(0)
  // The model of this process answers it meanwhile.
  const child = Bun.spawn(['node', 'program.mjs'], { cwd: project, env: at.env, stdout: 'pipe', stderr: 'pipe', timeout: 50_000 })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect({ code: await child.exited, stdout, stderr }).toEqual({ code: 0, stdout: 'It is written down.', stderr: '' })
  const [first = '', second = '', third = ''] = model.asked
  for (const offered of ['mcp_notes_add_note', 'Write something down', 'word-count']) expect(first).toContain(offered)
  expect(first).not.toContain('scripts/check.sh')
  expect(second).toContain('scripts/check.sh')
  expect(third).toContain('noted: buy milk')
  expect(model.asked).toHaveLength(3)
})

test.if(needs('bwrap', 'node'))('the registry of docs/library-data.md, in Bun, prints what stands there', () => {
  const program = documented('docs/library-data.md', '## MCP servers', 'ts')
  writeFileSync(join(project, 'registry.mjs'), program)
  const inBun = [process.execPath, '--config=/dev/null', '--no-install', 'registry.mjs']
  expect(at.run(inBun, { cwd: project })).toEqual({
    code: 0,
    stdout: documented('docs/library-data.md', program.trimEnd().concat('\n```'), ''),
    stderr: '',
  })
})
