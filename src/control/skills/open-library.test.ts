import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exports as exported } from '../../../package.json'
import { getAgentSkillIndex } from './agent-skill-index.ts'
import { openLibrary } from './open-library.ts'
import { skillsSearchTool } from './skill-search.ts'

const folder = mkdtempSync(join(tmpdir(), 'braidclaw-skills-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'agent', 'library.yaml')
mkdirSync(join(folder, 'agent', 'skills'), { recursive: true })
writeFileSync(join(folder, 'secret.md'), 'secret')
writeFileSync(join(folder, 'agent', 'skills', 'jail.md'), '# How\n\nRun bastille-list.\n')
symlinkSync(join(folder, 'secret.md'), join(folder, 'agent', 'skills', 'link.md'))
const owner = { id: 'sysadmin', role: 'sysadmin' }

function opened(entry: string) {
  writeFileSync(file, `skills:\n  - name: jail-status\n    summary: Check a jail\n    ${entry}\n`)
  return openLibrary(file)
}

test.each([
  ['path: ../secret.md', /4:11: .*"\.\.\/secret\.md" must be relative/],
  ['path: /etc/passwd', /must be relative/],
  ['path: skills/link.md', /leads out of the folder/],
  ['path: skills/none.md', /does not exist/],
  ['path: skills', /cannot be read/],
])('%s is refused with its place', (entry, message) => {
  const library = opened(entry)
  expect(library.ok).toBe(false)
  if (!library.ok) expect(library.message).toMatch(message)
})

test('a missing library is told apart from a broken one', () => {
  expect(openLibrary(join(folder, 'none.yaml'))).toMatchObject({ ok: false, isMissing: true })
  expect(opened('nothing: 1')).toMatchObject({ ok: false, isMissing: false })
})

test('the tool answers with the text of the file, and a snapshot of the library answers the same', async () => {
  const library = opened('path: skills/jail.md')
  if (!library.ok) throw new Error(library.message)
  const skills = library.forAgent(owner)
  const search = skills.openSearch()
  const tool = skillsSearchTool(search)
  const context = { conversationId: 'c', callId: 'k', signal: new AbortController().signal, plan: '' }
  const found = await tool.invoke({ query: 'jail' }, context)
  expect(found.output).toBe('# jail-status\n\nCheck a jail\n\n# How\n\nRun bastille-list.')
  expect((await tool.invoke({ query: 'unknown' }, context)).output).toContain('No skill matches "unknown"')
  writeFileSync(join(folder, 'snapshot.json'), skills.snapshot())
  const again = openLibrary(join(folder, 'snapshot.json'))
  expect(again.ok && again.forAgent(owner).openSearch()('jail', 1)[0]?.content).toBe('# How\n\nRun bastille-list.\n')
})

test('a developer gets the index by one call, and the reason when there is none', () => {
  opened('roles: [sysadmin]')
  expect(() => getAgentSkillIndex('sysadmin', { library: join(folder, 'none.yaml') })).toThrow('does not exist')
  expect(getAgentSkillIndex('other', { library: file })).toBe('')
  expect(getAgentSkillIndex('sysadmin', { library: file })).toContain('- jail-status: Check a jail')
  expect(getAgentSkillIndex('ops-1', { library: file, role: 'sysadmin' })).toContain('- jail-status: Check a jail')
  expect(exported['./skill-library']).toBe('./src/control/skills/agent-skill-index.ts')
})

test('the extension of pi is a module that registers the tool and needs nothing else', async () => {
  const library = opened('path: skills/jail.md')
  if (!library.ok) throw new Error(library.message)
  const path = join(folder, 'extension.ts')
  writeFileSync(path, library.forAgent(owner).piExtension() ?? '')
  const registered: { name: string; execute(id: string, input: object): Promise<{ content: { text: string }[] }> }[] = []
  const extension = await import(path)
  extension.default({ registerTool: (tool: (typeof registered)[number]) => registered.push(tool) })
  const [tool] = registered
  expect(tool?.name).toBe('skills_search')
  const ask = async (query: string) => (await tool?.execute('1', { query }))?.content[0]?.text
  expect(await ask('bastille')).toContain('# jail-status\n\nCheck a jail\n\n# How')
  expect(await ask('')).toBe('- jail-status: Check a jail')
  expect(await ask('"(*')).toContain('No skill matches')
})
