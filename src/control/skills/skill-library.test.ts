import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { skillIndex } from './library-file.ts'
import { matchSkill } from './open-library.ts'
import type { Skill } from './skill.ts'
import { type LibraryProblem, readSkillLibrary } from './skill-library.ts'
import { openSkillSearch } from './skill-search.ts'

const missing = () => ({ ok: false, message: 'does not exist' }) as const

const seed = `
skills:
  - name: jail-status
    summary: Check whether a jail runs
    roles: [sysadmin]
    invoke: [jail running, '/zfs (list|status)/']
    content: |
      Run the operation bastille-list and look for the name.
  - id: vacuum
    summary: Vacuum a database
    agents: [db-admin]
    invoke: vacuum
    command: [/usr/bin/vacuumdb, --all]
  - name: escalate
    summary: Hand a task to the orchestrator
`

function skillsIn(text: string): readonly Skill[] {
  const read = readSkillLibrary(text, missing)
  if (!read.ok) throw new Error(JSON.stringify(read.problems))
  return read.skills
}

function problemsIn(text: string): readonly LibraryProblem[] {
  const read = readSkillLibrary(text, missing)
  return read.ok ? [] : read.problems
}

const sysadmin = { id: 'sysadmin', role: 'sysadmin' }

test('everything that is wrong is reported at once, by line and column', () => {
  const text = `skills:
  - name: one
    summary: 3
    invoke: ['/(?=a)/', 'fine', '/a*/']
  - summary: no name
    extra: 1
  - name: one
    summary: again
    content: x
    path: ../../etc/passwd
`
  expect(problemsIn(text).map(({ line, column, message }) => `${line}:${column} ${message}`)).toEqual([
    '3:14 skills.0.summary: Invalid input: expected string, received number',
    '6:12 skills.1.extra: unknown field',
    '10:11 skills.2.path: either "content" or "path", not both',
  ])
  expect(problemsIn(text.replace('summary: 3', 'summary: three')).map(({ line, column }) => [line, column])).toEqual([
    [4, 14],
    [4, 33],
    [6, 12],
    [7, 5],
    [10, 11],
  ])
})

test.each([
  ['a broken list', 'skills: [\n  a: 1\n', /flow|sequence|map/i],
  ['a key that is there twice', 'skills: []\nskills: []\n', /unique/],
  ['no list', '- a\n', /expected object/],
  ['nothing', '', /expected object/],
  ['an unknown version', 'version: 7\nskills: []\n', /version/],
  ['a bomb of aliases', bomb(), /alias/i],
  ['a tag that makes an object', 'skills: !!js/function "x"\n', /tag|array/i],
])('%s is a problem with a place', (_, text, message) => {
  const [problem] = problemsIn(text)
  expect(problem?.message).toMatch(message)
  expect(problem?.line).toBeGreaterThan(0)
})

function bomb(): string {
  const levels = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`)
  return `a0: &a0 [x]\n${levels.join('\n')}\nskills: []\n`
}

test('no text makes the reader throw', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), fc.nat(seed.length), (noise, at) => {
      readSkillLibrary(`${seed.slice(0, at)}${noise}${seed.slice(at)}`, missing)
    }),
    { numRuns: 150 },
  )
})

test('an agent has the skills of its role, its own, and those of everybody; the index is the same each time', () => {
  const skills = skillsIn(seed)
  const index = skillIndex(skills, sysadmin)
  expect(index.split('\n').slice(4)).toEqual([
    '- jail-status: Check whether a jail runs',
    '- escalate: Hand a task to the orchestrator',
    '',
  ])
  expect(skillIndex(skillsIn(seed), sysadmin)).toBe(index)
  expect(skillIndex(skills, { id: 'db-admin', role: 'x' })).toContain('- vacuum:')
  expect(skillIndex(skills.slice(0, 1), { id: 'x', role: 'x' })).toBe('')
})

test('a large library is cut and says so', () => {
  const many = Array.from({ length: 900 }, (_, n) => `  - {name: skill-${n}, summary: ${'é'.repeat(60)}}`)
  const index = skillIndex(skillsIn(`skills:\n${many.join('\n')}\n`), sysadmin)
  expect(Buffer.byteLength(index)).toBeLessThanOrEqual(8_192)
  expect(index).toMatch(/- and \d+ more: find them with skills_search\n$/)
})

test('a task asks for the first skill whose words it has in order, or whose expression matches', () => {
  const skills = skillsIn(seed)
  const asked = (title: string, description = '', owner = sysadmin) => matchSkill(skills, owner, { title, description })?.name
  expect(asked('Check if db jail is running', 'Verify clawdie-db is up and healthy')).toBe('jail-status')
  expect(asked('ZFS list please')).toBe('jail-status')
  expect(asked('running away from jail')).toBeUndefined()
  expect(asked('jails are running')).toBeUndefined()
  expect(asked('jail', 'running')).toBeUndefined()
  expect(asked('Vacuum now')).toBeUndefined()
  expect(asked('Vacuum now', '', { id: 'db-admin', role: 'db-admin' })).toBe('vacuum')
})

test('an expression that would make others backtrack for years answers at once', () => {
  const [skill] = skillsIn(`skills:\n  - {name: slow, summary: s, invoke: '/^(a+)+(a|a)*(a*a*a*)*b$/'}\n`)
  const began = performance.now()
  expect(skill && matchSkill([skill], sysadmin, { title: 'a'.repeat(20_000), description: 'a'.repeat(60_000) })).toBeUndefined()
  expect(performance.now() - began).toBeLessThan(20_000)
})

test('the search finds by name, by word, by the beginning of a word, and by what the text says', () => {
  const search = openSkillSearch(skillsIn(seed))
  const names = (query: string) => search(query, 10).map(({ name }) => name)
  expect(names('vacuum')).toEqual(['vacuum'])
  expect(names('JAIL-STATUS')).toEqual(['jail-status'])
  expect(names('bastil')).toEqual(['jail-status'])
  expect(names('databases')).toEqual(['vacuum'])
  expect(names('')).toEqual(['jail-status', 'vacuum', 'escalate'])
  expect(names('nothing like that')).toEqual([])
})

test('no character of a query breaks the search', () => {
  const search = openSkillSearch(skillsIn(seed))
  for (const query of ['"', '*', 'a AND (', 'NEAR(a b', 'name:jail', '-jail', "'; DROP TABLE skills", '^', '"jail', '\0jail', '…'])
    expect(() => search(query, 5)).not.toThrow()
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (query) => {
      search(query, 5)
    }),
  )
  expect(search('name:jail', 5).map(({ name }) => name)).toEqual(['jail-status'])
})
