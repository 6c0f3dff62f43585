/**
 * Runs every plan that may run, with a canary program in place of each forbidden program. The run is short here; for a long run with
 * another seed each time: `FUZZ_RUNS=200000 bun test ./src/security/command/canary.test.ts`; FUZZ_SEED repeats one.
 */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { medium, positions, texts, wrappers } from './corpus.fixture.ts'
import { type CommandPlan, judgeCommand } from './judge.ts'
import { placed, policyFor } from './policy.fixture.ts'

const { FUZZ_RUNS = 1_500, FUZZ_SEED: seed } = process.env
const runs = Number(FUZZ_RUNS)
const at = { root: '' }
const tools = 'ls cat echo printf grep find xargs sed awk env nice timeout sort head wc tr true basename bash sh git tee'.split(' ')

beforeAll(() => {
  at.root = mkdtempSync(join(tmpdir(), 'braidclaw-canary-'))
  for (const folder of ['bin', 'ws']) mkdirSync(join(at.root, folder))
  for (const tool of tools) {
    const file = Bun.which(tool)
    if (file) symlinkSync(file, join(at.root, 'bin', tool))
  }
  writeFileSync(join(at.root, 'bin', 'zap'), `#!${Bun.which('bash')}\necho fired > '${join(at.root, 'fired')}'\n`)
  chmodSync(join(at.root, 'bin', 'zap'), 0o755)
})
afterAll(() => rmSync(at.root, { recursive: true }))

/** A plan whose program does not exist runs nothing. */
function run(plan: CommandPlan): void {
  if (plan.kind === 'argv' && !existsSync(plan.executable)) return
  const argv =
    plan.kind === 'argv'
      ? [plan.executable, ...plan.argv.slice(1)]
      : [Bun.which('bash') ?? 'bash', '--noprofile', '--norc', '-c', plan.script]
  Bun.spawnSync([...confined(), ...argv], {
    cwd: join(at.root, 'ws'),
    env: { PATH: join(at.root, 'bin'), HOME: '/nonexistent' },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
    timeout: 1_000,
    killSignal: 'SIGKILL',
  })
}

/** Where there is a sandbox, a background loop that a command started ends with the sandbox, and only the canary's mark can be written. */
function confined(): readonly string[] {
  const bwrap = Bun.which('bwrap')
  if (bwrap === null) return []
  return [
    bwrap,
    '--ro-bind',
    '/',
    '/',
    '--bind',
    at.root,
    at.root,
    '--dev',
    '/dev',
    '--proc',
    '/proc',
    '--unshare-all',
    '--die-with-parent',
    '--',
  ]
}

const fired = () => existsSync(join(at.root, 'fired'))

test('the canary fires when a plan reaches it', () => {
  run({ kind: 'script', script: 'zap' })
  expect(fired()).toBe(true)
  rmSync(join(at.root, 'fired'))
})

/** Damaged commands: quotes that no longer match, words that moved, operators in odd places. */
const source = fc.constantFrom(
  ...[...positions, ...wrappers, ...texts, ...medium].filter(
    (text) => !/watch|flock|sleep|while @|until|systemd|chroot|unshare|select|time|setsid|nohup|coproc|&$/.test(text),
  ),
)
const piece = fc.constantFrom(
  ' ',
  '\n',
  ';',
  '|',
  '(',
  ')',
  '{',
  '}',
  '$',
  '`',
  '"',
  "'",
  '\\',
  '<',
  '>',
  '#',
  '*',
  '!',
  '=',
  ' zap ',
  'x=zap;',
  '$x',
  '<<E\nzap\nE\n',
  'eval ',
  '-c ',
  '--',
  'xargs ',
  "'zap'",
  "$'",
  'f(){ zap;};',
  '$((',
  '))',
  '[[',
  '# ',
  " 'a[$(zap)]' ",
  'set -- -v ',
  ' "$@" ',
  ' $@ ',
  'printf ',
  'test ',
  '[ ',
  ' -v ',
  ' -p ',
  'wait ',
  'unset ',
  'read ',
  'declare ',
  'let ',
  '${x[',
  '${!x}',
  '${x@P}',
  '[[ -v ',
  ' -eq ',
  'PATH=. ',
)
const edit = fc.tuple(fc.nat(1_000), fc.nat(2), piece)
const broken = fc.tuple(source, fc.array(edit, { maxLength: 4 })).map(([template, edits]) =>
  edits.reduce(
    (text, [where, cut, add]) => {
      const point = where % (text.length + 1)
      return text.slice(0, point) + add + text.slice(point + cut)
    },
    placed(template, 'zap x'),
  ),
)

test(
  'no plan at medium risk ever reaches a forbidden program',
  () => {
    const policy = policyFor({
      cwd: join(at.root, 'ws'),
      forbidden: ['zap'],
      resolve: (name) => Bun.which(name, { PATH: join(at.root, 'bin') }) ?? undefined,
    })
    const ran = { count: 0 }
    fc.assert(
      fc.property(broken, (command) => {
        const { verdict, risk, plan } = judgeCommand(command, policy)
        if (verdict !== 'run' || risk !== 'medium' || !plan) return
        ran.count++
        run(plan)
        const went = fired()
        rmSync(join(at.root, 'fired'), { force: true })
        expect(went).toBe(false)
      }),
      { numRuns: runs, ...(seed === undefined ? {} : { seed: Number(seed) }) },
    )
    expect(ran.count).toBeGreaterThan(10)
  },
  30_000 + runs * 20,
)

const readers = fc.constantFrom(
  'cat in',
  'sort in',
  'uniq in',
  'sed -n 1p in',
  "sed 's/a/b/' in",
  'awk 1 in',
  'find . -name in',
  'head -1 in',
  'tr a b < in',
  'echo x',
  'git status',
  'ls',
  'grep a in',
  'printf %s x',
  'xargs -n1 echo < in',
  'wc in',
  'tee /dev/null < in',
  'env cat in',
  'bash -c "cat in"',
)
const writing = fc.constantFrom(
  ' > out',
  ' >> in',
  ' >| out',
  ' &> out',
  ' 2> out',
  ' <> out',
  ' -o out',
  ' -i',
  ' -i.b',
  ' --in-place',
  ' --output=out',
  ' out',
  ' | tee out',
  ' -exec touch out {} +',
  " -e 'w out'",
  ' -fprint out',
  '; : > out',
  ' > "$x"',
  ' $(: > out)',
  ' <(: > out)',
  ' -T .',
  '; touch out',
  ' -delete',
  ' \'{print > "out"}\'',
  ' -- out',
  ' -w out',
)
const maybeWriting = fc
  .tuple(
    fc.constantFrom(...positions.filter((text) => !/sleep|while @|until|select|coproc|&$|exec 3/.test(text))),
    readers,
    fc.array(writing, { maxLength: 2 }),
  )
  .map(([template, reader, more]) => placed(template, reader + more.join('')))

test(
  'no command that is proved to only read ever changes a file',
  () => {
    const workspace = join(at.root, 'ws')
    const picture = () => readdirSync(workspace).map((name) => [name, name === '.git' ? '' : readFileSync(join(workspace, name), 'utf8')])
    writeFileSync(join(workspace, 'in'), 'a b\n')
    const policy = policyFor({ cwd: workspace, resolve: (name) => Bun.which(name, { PATH: join(at.root, 'bin') }) ?? undefined })
    const before = picture()
    const ran = { count: 0 }
    fc.assert(
      fc.property(maybeWriting, (command) => {
        const { readOnly, plan } = judgeCommand(command, policy)
        if (!readOnly || !plan) return
        ran.count++
        run(plan)
        expect(picture()).toEqual(before)
      }),
      { numRuns: Math.ceil(runs / 5), ...(seed === undefined ? {} : { seed: Number(seed) }) },
    )
    expect(ran.count).toBeGreaterThan(10)
    rmSync(join(workspace, 'in'))
  },
  30_000 + runs * 20,
)
