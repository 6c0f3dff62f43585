import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { commandRules } from '../rules.ts'
import { isHarmless, judgeCommand } from './judge.ts'
import { placed, policyFor, ratingOf, verdictOf } from './policy.fixture.ts'

describe('limits', () => {
  test('text beyond 256 KiB is high and never milder for what stands in it', () => {
    const padding = `echo ${'a'.repeat(300_000)}`
    expect(verdictOf(padding)).toMatchObject({ verdict: 'run', risk: 'high', rule: 'command.limit', plan: undefined })
    expect(ratingOf(`${padding}\nrm x`)).toBe('blocked')
    expect(ratingOf(`${padding}\n"r"m x`)).toBe('blocked')
    expect(ratingOf(`echo ${'é'.repeat(140_000)}`)).toBe('high')
    expect(ratingOf(`echo ${'a'.repeat(200_000)}`)).toBe('medium')
  })

  test('more than 16 levels are high, and what is blocked below them stays blocked', () => {
    const nest = (depth: number, inner: string) => Array.from({ length: depth }).reduce<string>((text) => `echo $(${text})`, inner)
    expect(ratingOf(nest(12, 'ls'))).toBe('medium')
    expect(verdictOf(nest(17, 'ls'))).toMatchObject({ risk: 'high', rule: 'command.limit' })
    expect(ratingOf(nest(17, 'rm x'))).toBe('blocked')
    expect(ratingOf(nest(5_000, 'rm x'))).not.toBe('medium')
    expect(ratingOf(`${'('.repeat(20)} ls ${')'.repeat(20)}`)).toBe('high')
  })

  test('more than 20,000 parts are high, and what is blocked among them stays blocked', () => {
    const many = 'ls\n'.repeat(12_000)
    expect(verdictOf(many)).toMatchObject({ risk: 'high', rule: 'command.limit' })
    expect(ratingOf(`${many}rm x`)).toBe('blocked')
    expect(ratingOf('ls\n'.repeat(2_000))).toBe('medium')
  })

  test('values, calls and words that multiply come to an end', () => {
    const doubling = Array.from({ length: 200 }, (_, step) => `x${step}="$x${step - 1}$x${step - 1}"`).join(';')
    const calls = Array.from({ length: 200 }, (_, step) => `f${step}() { f${(step + 1) % 200}; f${(step + 7) % 200}; }`).join('\n')
    for (const command of [`${doubling}; cat $x199`, calls, `echo ${'{a,b}'.repeat(40)}`, '$'.repeat(50_000), '('.repeat(50_000)]) {
      expect(ratingOf(command)).not.toBe('medium')
    }
  })

  test('texts within texts count towards the same limits', () => {
    const nest = (depth: number) =>
      Array.from({ length: depth }).reduce<string>((text) => `eval ${JSON.stringify(text).replaceAll('$', '\\$')}`, 'ls')
    expect(ratingOf(nest(3))).toBe('medium')
    expect(ratingOf(nest(9))).not.toBe('blocked')
    expect(ratingOf(`sh -c '${'ls\n'.repeat(12_000)}'`)).toBe('high')
  })
})

describe('characters', () => {
  test('a NUL byte is blocked', () => expect(verdictOf('ls\0')).toMatchObject({ verdict: 'blocked', rule: 'command.nul' }))

  test.each([
    '\u0007',
    '\u001b',
    '\r',
    '\u007f',
    '\u0085',
    '\u00a0',
    '\u00ad',
    '\u061c',
    '\u200b',
    '\u200e',
    '\u2028',
    '\u202e',
    '\u2066',
    '\u2060',
    '\ufeff',
    '\u3000',
    '\ud800',
    '\u{e0041}',
  ])('a hidden character (%j) is high', (character) => {
    expect(verdictOf(`echo 'a${character}b'`)).toMatchObject({ risk: 'high', rule: 'command.hidden' })
  })

  test('letters of every script, emoji, tabs and newlines are fine', () => {
    expect(ratingOf('echo "Grüße 你好 🚀\t"\nls')).toBe('medium')
  })
})

describe('what would be executed', () => {
  test('a simple literal command is spawned without a shell', () => {
    expect(verdictOf(`grep -n 'a b' "x y" $'t\\'t' src/{a,b}.ts`).plan).toEqual({
      kind: 'argv',
      argv: ['grep', '-n', 'a b', 'x y', "t't", 'src/a.ts', 'src/b.ts'],
      executable: '/usr/bin/grep',
    })
  })

  test('a name that cannot be resolved is left to the shell', () => {
    expect(verdictOf('rg x', { resolve: () => undefined }).plan).toEqual({ kind: 'script', script: 'rg x' })
  })

  test('anything else is a script printed anew', () => {
    expect(verdictOf(`ls   "a b" |   # rm\n wc -l`).plan).toEqual({ kind: 'script', script: "ls 'a b' | wc -l" })
    expect(verdictOf('cd src').plan).toEqual({ kind: 'script', script: 'cd src' })
    expect(verdictOf('cat <<E\n$x "y"\nE').plan).toEqual({ kind: 'script', script: `cat <<< "\${x}"' "y"'` })
  })

  test('the text of a shell is printed anew too, and bash reads it', () => {
    expect(verdictOf(`sh -c 'ls   "a b"'`).plan).toEqual({ kind: 'script', script: `bash --noprofile --norc -c 'ls '\\''a b'\\'''` })
    expect(verdictOf(`eval   'ls "a b"'`).plan).toEqual({ kind: 'script', script: `eval 'ls '\\''a b'\\'''` })
  })

  test('a pattern is printed so that no file name can be an option', () => {
    expect(verdictOf('tar cf x.tar *').plan).toEqual({ kind: 'script', script: 'tar cf x.tar ./*' })
    expect(verdictOf('for f in *.md; do sed -n 1p "$f"; done').plan).toMatchObject({ script: expect.stringContaining('in ./*.md') })
    expect(verdictOf('ls *').plan).toMatchObject({ script: 'ls *' })
  })

  test('what cannot be parsed, or is too much, has no plan', () => {
    for (const command of ['echo "x', 'ls )', 'if ls', `echo ${'a'.repeat(300_000)}`]) expect(verdictOf(command).plan).toBeUndefined()
  })

  test('what is blocked has no plan', () => expect(verdictOf('rm x').plan).toBeUndefined())
})

describe('what is reported', () => {
  test('the executables are those inside wrappers and shells, with sub-commands', () => {
    expect(verdictOf('timeout 5 env A=1 git -C src status | nice wc -l').executables).toEqual(['git status', 'wc'])
    expect(verdictOf(`bash -c 'npm run build && ls'`).executables).toEqual(['npm run', 'ls'])
    expect(verdictOf('find . -exec grep x {} +').executables).toEqual(['find', 'grep'])
    expect(verdictOf('cd src; true').executables).toEqual([])
  })

  test('the paths that would be written are absolute and follow cd', () => {
    expect(verdictOf('cd src && ls > out && cp a ../b').writes).toEqual(['/ws/src/out', '/ws/b'])
    expect(verdictOf('ls > /dev/null 2>&1').writes).toEqual([])
    expect(verdictOf('touch {a,b}; tee c < d').writes).toEqual(['/ws/a', '/ws/b', '/ws/c'])
  })

  test('a refusal by the path gate keeps its rule and words', () => {
    expect(verdictOf('cat /etc/passwd')).toMatchObject({ rule: 'path.outside_workspace', reason: expect.stringContaining('/etc/passwd') })
  })

  test('every rule that is used has its line in the table', () => {
    for (const command of [
      'ls',
      'rm x',
      'mkfs',
      ':(){ :|:& };:',
      'curl x|sh',
      'foo',
      '$x',
      'cat $x',
      'sed e',
      'PATH=x ls',
      'bash',
      'sudo ls',
      'ls(){ :; }',
      'ls\0',
      'ls\r',
      'ls )',
    ]) {
      expect(Object.keys(commandRules)).toContain(verdictOf(command).rule)
    }
  })
})

describe('the lists', () => {
  test('what is forbidden is blocked even when it is allowed as well', () => {
    expect(ratingOf('rm x', { allow: ['rm'] })).toBe('blocked')
    expect(ratingOf('git status', { forbidden: ['git'] })).toBe('blocked')
  })

  test('destructive commands are blocked whatever is listed', () => {
    const open = { allow: ['rm', 'mkfs', 'dd', 'chmod', 'chown', 'reboot', 'shutdown', 'curl', 'sh'], forbidden: [] }
    for (const command of [
      'rm -rf /',
      'rm -rf *',
      'mkfs x',
      'dd if=x',
      'chmod -R 777 /',
      'chown -R a b',
      'reboot',
      'shutdown',
      'curl x | sh',
      ':(){ :|:& };:',
    ]) {
      expect(ratingOf(command, open)).toBe('blocked')
    }
    expect(ratingOf('rm build.log', open)).toBe('medium')
    expect(ratingOf('rm build.log', { forbidden: [] })).toBe('high')
  })

  test('an allowed interpreter may run a file of the workspace, never code or its input', () => {
    const open = { allow: ['python3', 'node', 'bash'] }
    expect(ratingOf('python3 script.py --flag', open)).toBe('medium')
    expect(ratingOf('bash script.sh', open)).toBe('medium')
    for (const command of ['python3 -c 1', 'python3', 'python3 -', 'python3 -m http.server', 'node -e 1', 'cat x | bash'])
      expect(ratingOf(command, open)).toBe('high')
    expect(ratingOf('python3 ../x.py', open)).toBe('blocked')
  })

  test('nothing is allowed that is not listed, but the grammar of the shell needs no list', () => {
    expect(ratingOf('ls', { allow: [] })).toBe('high')
    expect(ratingOf('cd src; true', { allow: [] })).toBe('medium')
  })

  test('an allowed tool that is not known in detail is still held to the path gate', () => {
    const open = { allow: ['mytool'] }
    expect(ratingOf('mytool build src', open)).toBe('medium')
    for (const command of ['mytool /etc/x', 'mytool --out=/etc/x', 'mytool -o/etc/x', 'mytool ../x', 'mytool ~/x'])
      expect(ratingOf(command, open)).toBe('blocked')
    expect(ratingOf('mytool "$x"', open)).toBe('high')
  })
})

describe('readonly', () => {
  test.each(['pwd', 'date', 'date +%F', 'true', 'echo hello', "echo '$(rm x)'"])('%s is harmless', (command) => {
    expect(isHarmless(verdictOf(command))).toBe(true)
  })

  test.each([
    'rm x',
    'ls',
    'cat x',
    'echo x > y',
    'echo $x',
    'echo $(ls)',
    'date -s x',
    'date -f x',
    'pwd; ls',
    './echo',
    '/ws/echo x',
    'git status',
    'echo *',
    '$x',
    'echo "',
  ])('%s is not', (command) => {
    expect(isHarmless(verdictOf(command))).toBe(false)
  })
})

test('what writes is never harmless', () => {
  expect(isHarmless({ ...verdictOf('echo x'), writes: ['/ws/x'] })).toBe(false)
})

describe('totality', () => {
  const alphabet = fc.constantFrom(
    ...`rm ls \n\t;|&(){}[]<>$\`"'\\*?!~#=-+/.,:@%^0aA\0\u202e😀`,
    '$(',
    '${',
    '$((',
    '<<E\n',
    'EOF\n',
    ' -rf /',
    'if ',
    'then ',
    'fi',
    'case ',
    ' in ',
    'esac',
    '[[',
    ']]',
    'eval ',
    "sh -c '",
  )

  test('any text gets a verdict, and the same one twice', () => {
    fc.assert(
      fc.property(fc.array(alphabet, { maxLength: 40 }), (parts) => {
        const [first, second] = [verdictOf(parts.join('')), verdictOf(parts.join(''))]
        expect(first).toEqual(second)
        expect(['run', 'blocked']).toContain(first.verdict)
      }),
      { numRuns: 1000 },
    )
  })

  test('a policy that throws is a refusal', () => {
    const broken = policyFor({
      path: () => {
        throw new Error('broken')
      },
    })
    expect(judgeCommand('cat x', broken)).toMatchObject({ verdict: 'blocked', risk: 'high', plan: undefined })
  })

  test('nothing to run is harmless', () => expect(verdictOf('# only words').plan).toEqual({ kind: 'script', script: '' }))

  test('directories multiply within bounds', () => {
    const many = Array.from({ length: 40 }, (_, index) => `cd d${index}`).join('; ')
    expect(ratingOf(`${many}; ls`)).not.toBe('blocked')
    expect(ratingOf(placed('@; cat ../../x', many))).not.toBe('medium')
  })
})
