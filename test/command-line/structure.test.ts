/** `structure check` and `structure explain`: the page about them, this repository, and what they say of bad input. */

import { describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { shell } from '../support/shell.ts'

const root = join(import.meta.dir, '../..')
const page = readFileSync(join(root, 'docs/structure.md'), 'utf8')
const [rules = ''] = [...page.matchAll(/```toml\n(.*?)```/gs)].map(([, text]) => text ?? '')
const steps = [...page.matchAll(/```sh\n(.*?)```\n```text\n(.*?)```/gs)].map(([, script = '', printed = '']) => ({ script, printed }))
const own = readFileSync(join(root, 'examples/structure.toml'), 'utf8')

test('the commands of the page print what stands there', async () => {
  using at = nest()
  at.file('.braidclaw/structure.toml', rules)
  expect(steps).toHaveLength(2)
  for (const { script, printed } of steps) {
    const { stdout, stderr } = await shell(at, script)
    expect([stdout.replaceAll(at.workspace, '.'), stderr]).toEqual([printed, ''])
  }
})

describe('this repository', () => {
  test('keeps its own rules', async () => {
    using at = nest()
    for (const folder of ['src', 'test', 'scripts', 'bench', 'package.json'])
      cpSync(join(root, folder), join(at.workspace, folder), { recursive: true })
    at.file('.braidclaw/structure.toml', own)
    const { code, stdout } = await at.run(['structure', 'check', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, violations: [], warnings: [] })
    expect(code).toBe(0)
  })

  const long = '// more\n'.repeat(501)
  test.each([
    ['layers', 'src/host/setup/setup.ts', `import '../../cli/exit.ts'`],
    ['layers', 'src/memory/memory.ts', `import '../host/api.ts'`],
    ['core-is-pure', 'src/kit/text.ts', `import 'node:fs'`],
    ['core-is-pure', 'src/kernel/select.ts', `import { x } from '../workspace/disk.ts'`],
    ['adapters-apart', 'src/tools/list.ts', `import { x } from '../memory/memory.ts'`],
    ['no-cycles', 'src/kit/sha256.ts', `import { x } from './text.ts'`],
    ['short-files', 'src/kit/more.ts', long],
    ['structure-tested', 'src/discovery/structure/more.ts', ''],
  ])('planted against "%s" in %s, a violation is found', async (rule, path, text) => {
    using at = nest()
    // The imports that lead elsewhere count by their paths, so these folders suffice.
    for (const folder of ['kit', 'kernel', 'discovery/structure'])
      cpSync(join(root, 'src', folder), join(at.workspace, 'src', folder), { recursive: true })
    at.file('.braidclaw/structure.toml', own)
    const before = JSON.parse((await at.run(['structure', 'check', '--json'])).stdout)
    expect(before.violations).toEqual([])
    const there = join(at.workspace, path)
    at.file(path, `${existsSync(there) ? readFileSync(there, 'utf8') : ''}${text}\n`)
    const { code, stdout } = await at.run(['structure', 'check', '--json'])
    expect([code, JSON.parse(stdout).violations]).toEqual([1, expect.arrayContaining([expect.objectContaining({ rule, path })])])
  })
})

describe('says', () => {
  test('every mistake of the rules with line and column, exit code 2', async () => {
    using at = nest()
    at.file('.braidclaw/structure.toml', '[blocks]\nui = 1\n[rules.a]\nfiles = "iu"\nmax_line = 3\n[rules.b\n')
    const { code, stdout, stderr } = await at.run(['structure', 'check'])
    expect([code, stdout]).toEqual([2, ''])
    const lines = stderr.replaceAll(`error: ${at.workspace}/.braidclaw/structure.toml:`, '').split('\n')
    expect(lines).toEqual([
      expect.stringMatching(/^6:9: not valid TOML: /),
      expect.stringMatching(/^2:6: blocks.ui: must be a text or a list of texts/),
      expect.stringMatching(/^5:1: rules.a.max_line: unknown key; .* did you mean "max_lines"\?/),
      expect.stringMatching(/^3:1: rules.a: needs exactly one of /),
      '',
    ])
  })

  test('in doctor whether the rules can be used', async () => {
    using at = nest()
    at.file('.braidclaw/structure.toml', '[rules.short]\nfiles = "src/"\nmax_lines = 9\n')
    expect((await at.run(['doctor'])).stdout).toContain('1 rule in ')
    at.file('.braidclaw/structure.toml', '[rules.short]\nmax_lines = 9\n')
    expect((await at.run(['doctor'])).stdout).toContain('structure.toml:1:1: rules.short: needs files: max_lines is about some of them')
  })

  test('where there are no rules, that one is misspelled, and that a pattern matches nothing', async () => {
    using at = nest()
    expect(await at.run(['structure', 'check'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('structure.toml does not exist'),
    })
    at.file('.braidclaw/structure.toml', '[rules.short]\nfiles = "scr/**/*.ts"\nmax_lines = 9\n')
    at.file('src/a.ts', '')
    expect(await at.run(['structure', 'check'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('warning: rule "short": "scr/**/*.ts" matches no file; did you mean "src"?'),
    })
    expect(await at.run(['structure', 'explain', 'shrot'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean "short"?'),
    })
    expect((await at.run(['structure', 'explain', 'short'])).stdout).toBe('rule short (veto, 0 files)\n')
  })

  test('nothing of what lies behind a link out of the folder, of binary files and of a folder without rights', async () => {
    using at = nest()
    at.file('.braidclaw/structure.toml', '[rules.short]\nfiles = "**"\nmax_lines = 1\n')
    mkdirSync(join(at.dir, 'outside'))
    writeFileSync(join(at.dir, 'outside/long.md'), '1\n2\n')
    symlinkSync(join(at.dir, 'outside'), join(at.workspace, 'out'))
    symlinkSync('.', join(at.workspace, 'round'))
    writeFileSync(join(at.workspace, 'binary'), new Uint8Array([255, 254, 10, 0, 10, 10]))
    expect(await at.run(['structure', 'check'])).toMatchObject({ code: 0, stdout: '1 file, 1 rule: all hold\n' })
  })

  test('that nothing but a person may be asked: the whole as JSON', async () => {
    using at = nest()
    at.file('.braidclaw/structure.toml', rules)
    at.file('src/routes/a.ts', '')
    const { stdout } = await at.run(['structure', 'check', '--json'])
    expect(JSON.parse(stdout)).toEqual({
      ok: false,
      files: 1,
      rules: 3,
      violations: [{ rule: 'routes-tested', verdict: 'ask', path: 'src/routes/a.ts', says: 'has no "src/routes/a.test.ts" beside it' }],
      warnings: ['rule "ui-without-database": "ui" matches no file'],
    })
    const explained = JSON.parse((await at.run(['structure', 'explain', 'src/routes/a.ts', '--json'])).stdout)
    expect(explained.relations.map(({ edgeType }: { edgeType: string }) => edgeType)).toEqual(['block', 'object', 'lever'])
    expect(explained.rules).toHaveLength(2)
  })
})
