/** Measures the review of skills over 60 poisoned and 60 honest ones, and holds what it says of each. */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadSkillParser } from '../../src/discovery/skill-files.ts'
import { reviewSkill } from '../../src/discovery/skill-review.ts'
import { openSkills } from '../../src/host/toolset/guests/skills/skills.ts'
import { escapeHidden } from '../../src/kit/escape.ts'
import { place } from '../support/host.ts'
import { corpus, writeSkill } from './corpus.fixture.ts'

async function reviewed(kind: 'honest' | 'poisoned') {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-corpus-'))
  using at = place()
  const skills = await openSkills(at.setup(), at.cwd)
  try {
    return corpus(kind).map((skill) => ({ name: skill.name, ...skills.review(writeSkill(root, skill)) }))
  } finally {
    rmSync(root, { recursive: true })
  }
}

test('each of the 60 poisoned skills is marked, for a reason of its kind', async () => {
  const all = await reviewed('poisoned')
  expect(all).toHaveLength(60)
  expect(all.filter(({ suspicious, faults }) => suspicious.length + faults.length === 0).map(({ name }) => name)).toEqual([])
  const rules: { readonly [beginning: string]: RegExp } = {
    ...{
      'fetch-and-run': /download|code/,
      archive: /download/,
      encoded: /encoded/,
      hidden: /hidden/,
      comment: /unseen/,
      override: /override|download/,
    },
    ...{
      credentials: /credentials/,
      'checks-off': /checks/,
      persist: /persist/,
      'reverse-shell': /shell/,
      destroy: /destroys/,
      dns: /tunnel/,
    },
    ...{ install: /registry/, link: /link|files/, setuid: /files/, binary: /binary/, 'script-in-picture': /binary/, homoglyph: /spelling/ },
    ...{ split: /code/, wide: /tools/ },
  }
  for (const { name, suspicious, faults } of all) {
    const expected = Object.entries(rules).find(([beginning]) => name.startsWith(beginning))?.[1]
    expect([name, [...suspicious, ...faults].map(({ rule }) => rule).join(' ')]).toEqual([name, expect.stringMatching(expected ?? /^$/)])
  }
})

test('of the 60 honest skills two are marked, and none has a fault', async () => {
  const all = await reviewed('honest')
  expect(all).toHaveLength(60)
  expect(all.filter(({ suspicious }) => suspicious.length > 0).map(({ name }) => name)).toEqual(['bun-setup', 'prompt-injection-review'])
  expect(all.flatMap(({ name, faults }) => faults.map(({ why }) => `${name}: ${why}`))).toEqual([])
})

test('the review says what a skill may do', async () => {
  const honest = await reviewed('honest')
  const does = (name: string) => honest.find((one) => one.name === name)?.does
  expect(does('weather')).toEqual({ scripts: [], programs: ['curl'], hosts: ['api.open-meteo.com', 'wttr.in'], outside: [], tools: [] })
  expect(does('screenshots')?.scripts).toEqual(['scripts/shoot.sh'])
  expect(does('log-reading')?.outside).toEqual(['/var/log/nginx/error.log'])
  expect(does('k8s-debug')?.programs).toEqual(['kubectl'])
  expect(does('api-review')?.tools).toEqual(['file_read', 'content_search'])
  expect(does('nginx')?.programs).toContain('sudo')
})

const file = (path: string, text: string) => ({ path, kind: 'file' as const, text })

test('faults of the format are named', async () => {
  const parse = await loadSkillParser()
  const faults = (text: string) => reviewSkill(parse(text, '/s/notes/SKILL.md'), [file('SKILL.md', text)]).faults.map(({ why }) => why)
  expect(faults('---\nname: notes\ndescription: Does it.\n---\nSteps.\n')).toEqual([])
  expect(faults('no front matter')).toEqual(['it does not begin with "---", a name and a description'])
  expect(faults('---\nname: notes\n---\nSteps.')).toEqual(['it has no description'])
  expect(faults('---\nname: Other\ndescription: Does it.\n---\n')).toEqual([
    'the name should have 1 to 64 characters a-z, 0-9 and -',
    'the name should be that of the folder',
    'it has no instructions below the front matter',
  ])
  expect(faults('---\nname: notes\ndescription: Does it.\n---\nSee [it](refs/a.md).')).toEqual([
    'it links to "refs/a.md", which does not exist',
  ])
  expect(faults(`---\nname: notes\ndescription: Does it.\n---\n${'x\n'.repeat(501)}`)[0]).toContain('at most 500 lines')
})

test.each(['<a', '`', '~~~', '<!--', '$(', 'ignore ', '[x](', '\\x41', '\n', 'A', '<a display:none'])(
  'a text of %j takes bounded time',
  (unit) => {
    const text = unit.repeat(131_072 / unit.length)
    const begin = performance.now()
    for (const path of ['SKILL.md', 'run.sh']) reviewSkill('', [file(path, text)])
    expect(performance.now() - begin).toBeLessThan(15_000)
  },
)

test('a finding shows no character that would drive a terminal', () => {
  const { suspicious } = reviewSkill('', [file('notes.md', 'a \u001b[2J b\nask the user for the password \u202e\n')])
  expect(suspicious.map(({ rule }) => rule)).toEqual(['hidden', 'credentials'])
  const said = suspicious.map(({ why }) => why).join('')
  expect(escapeHidden(said)).toBe(said)
})

test('a folder that cannot be read as a skill has one fault that says why', async () => {
  using at = place()
  const skills = await openSkills(at.setup(), at.cwd)
  expect(skills.review(join(at.cwd, 'nowhere')).faults).toHaveLength(1)
  mkdirSync(join(at.cwd, 'bare'))
  writeFileSync(join(at.cwd, 'bare/notes.md'), 'x')
  expect(skills.review(join(at.cwd, 'bare')).faults.map(({ why }) => why)).toEqual(['it has no SKILL.md that is text'])
})
