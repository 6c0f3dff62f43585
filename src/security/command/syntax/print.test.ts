// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell, not JavaScript
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { parse } from 'unbash'
import { medium } from '../corpus.fixture.ts'
import { policyFor, verdictOf } from '../policy.fixture.ts'
import { printScript } from './print.ts'

const place = { path: '' }
beforeAll(() => {
  place.path = mkdtempSync(join(tmpdir(), 'braidclaw-print-'))
})
afterAll(() => rmSync(place.path, { recursive: true }))

const print = (text: string) => printScript(parse(text), { home: '/home/u', edits: new Map(), dotted: new Set() })

function run(argv: readonly string[]) {
  const { stdout, exitCode } = Bun.spawnSync([...argv], {
    cwd: place.path,
    env: { PATH: '/usr/bin:/bin', HOME: '/home/u', LC_ALL: 'C.UTF-8' },
    stdin: 'ignore',
    stderr: 'ignore',
  })
  return { output: stdout.toString(), exitCode }
}
const bash = (script: string) => run(['bash', '--noprofile', '--norc', '-c', script])

/** Runs the plan of a command and the command itself, and returns both outputs. */
function both(command: string) {
  const { plan } = verdictOf(command, { cwd: place.path, resolve: (name) => Bun.which(name) ?? undefined })
  if (!plan) throw new Error(`no plan: ${JSON.stringify(command)}`)
  return { planned: plan.kind === 'argv' ? run([plan.executable, ...plan.argv.slice(1)]) : bash(plan.script), given: bash(command) }
}

const nasty = fc
  .array(
    fc.constantFrom(
      ...`ab1 '"\\$\`!*?[]{}~#;|&<>()=,.-+:@%^é\n\t`,
      '$x',
      '${x}',
      '$(ls)',
      '`ls`',
      '{a,b}',
      '\\n',
      "'\\''",
      '😀',
      '~/',
      '--',
      '<<E',
      '!!',
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''))

const single = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const double = (text: string) => `"${text.replace(/[\\$`"]/g, '\\$&')}"`
const escaped = (text: string) => (text === '' ? "''" : [...text].map((char) => (char === '\n' ? "'\n'" : `\\${char}`)).join(''))
const ansi = (text: string) => `$'${text.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\x09')}'`

const word = fc
  .tuple(nasty, nasty, fc.constantFrom(single, double, escaped, ansi), fc.constantFrom(single, double, escaped, ansi))
  .map(([a, b, one, two]) => one(a) + two(b))
const line = fc.tuple(word, word).map(([a, b]) => `printf '<%s>' ${a} ${b}`)

const shapes: readonly ((a: string, b: string, word: string) => string)[] = [
  (a) => a,
  (a, b) => `${a}; ${b}`,
  (a, b) => `${a} && ${b} || true`,
  (a) => `! ${a}`,
  (a) => `${a} | cat`,
  (a, b) => `( ${a}\n${b} ) | cat`,
  (a, b) => `{ ${a}; ${b}; } 2>&1`,
  (a, b) => `if ${a}; then ${b}; else ${a}; fi`,
  (_, b, word) => `for i in ${word} ${word}; do printf '[%s]' "$i"; ${b}; done`,
  (a, b, word) => `case ${word} in ${word}) ${a};; *) ${b};; esac`,
  (a, b) => `f() { ${a}; }; f; ${b}; f`,
  (a) => `x=$(${a}); printf '%s' "$x" "\${x}y" "\${#x}"`,
  (a) => `printf '%s' "a$(${a})b" \`true\``,
  (_a, _b, word) => `x=${word}; printf '%s' "$x" "\${x:-none}" "\${x:0:2}"`,
  (_a, _b, word) => `cat <<< ${word}`,
  (_a, _b, word) => `x=${word}\ncat <<EOF\n<$x> "\\$x" \\\\ 'q' $((1 + 2))\nEOF\ncat <<'EOF'\n$x \\ \`q\`\nEOF`,
  (_a, _b, word) => `cat <<-EOF | cat\n\t\tone $HOME\n\t two\n\tEOF\nprintf '%s' ${word}`,
  (_a, _b, word) => `[[ ${word} == ${word} ]]; printf '%s' "$?"`,
  (a) => `cat <(${a})`,
  (a, b) => `bash -c ${single(a)}; eval ${single(b)}`,
  (_, b, word) => `a=(${word} ${word}); printf '(%s)' "\${a[@]}" "\${#a[@]}"; ${b}`,
  (a) => `i=0; while [ "$i" -lt 2 ]; do ${a}; i=$((i + 1)); done; ((i++)); echo $i`,
  (a) => `trap ${single(a)} EXIT`,
]

describe('what is executed says the same as what was written', () => {
  test('with nasty literals in every shape', () => {
    fc.assert(
      fc.property(line, line, word, fc.constantFrom(...shapes), (a, b, text, shape) => {
        const { planned, given } = both(shape(a, b, text))
        expect(planned).toEqual(given)
      }),
      { numRuns: 250 },
    )
  })

  test.each([
    'echo {a,b}{1..3} {a,} x{,y} {01..03} {3..1} {a..e} {1..9..4} {x {y} {} a{b,c{d,e}}f',
    'echo ~ ~/x "~" \'~\' \\~ a~ x=~/y',
    'echo "a\\nb" "\\$x" "\\q" \'\\\' a\\ b \\a',
    "printf %s $'\\x41\\102\\u00e9\\n\\t\\'\\\\'",
    'set -- a "b c"; printf "[%s]" "$@" "$#" $1',
    'echo $((2+3*4)) $(( (2+3)*4 )) $((7/2%2)) $((1<2?3:4)) $((-2**2)) $((!0)) $((~5)) $((0x1f+010))',
    'x=5; echo $((x+1)) $((x>3&&x<9)) $((x=7,x*2)) $x',
    'x=a.b.c; echo ${x%.*} ${x##*.} ${x#a} ${x/b/z} ${x//./-} ${x^^} ${#x} ${x:2} ${x:0:1}',
    'if false; then echo a; elif true; then echo b; else echo c; fi',
    'for ((i=0;i<3;i++)); do echo $i; done',
    'case abc in a*|b*) echo 1;;& *c) echo 2;& x) echo 3;; esac',
    'until true; do echo never; done; while false; do :; done; echo end',
    'echo a & wait; echo b',
    'f() ( echo sub; ); f | cat; function g { echo g; }; g',
    'echo one >out; echo two >>out; cat <out; cat 0<out; cat out 2>/dev/null',
    'exec 3>&1; echo x >&3; exec 3>&-',
    'if=1; "if" 2>/dev/null; echo $if',
    '"echo" a; \\echo b; e""cho c',
    'time -p true; ! true; echo $?',
    'cat <<A; cat <<B\none\nA\ntwo\nB',
    'cat <<E\nE\necho after',
    'echo "$(cat <<E\ninner "q"\nE\n)"',
    'echo `echo \\`echo deep\\``',
    'diff <(echo a) <(echo a) && echo same',
    '[[ abc =~ ^a.c$ && -n x || -z y ]] && echo yes; [[ ! ( a == b ) ]] && echo no',
    'export A=1 B="x y"; echo "$A$B"; readonly C=2; echo $C',
    'a=1 b=2; echo $a$b; a+=3; echo $a',
    'echo a;echo b\necho c # d\n\n# e\necho f',
    'echo a \\\n  b',
    'printf "%s\\n" "a\\\nb"',
  ])('%j', (command) => {
    const { planned, given } = both(command)
    expect(planned).toEqual(given)
  })
})

describe('what is printed reads back as the same tree', () => {
  test('printing again changes nothing', () => {
    for (const command of medium) {
      const once = print(command)
      expect(parse(once).errors ?? []).toEqual([])
      expect(print(once)).toBe(once)
    }
  })

  test('in every shape', () => {
    fc.assert(
      fc.property(line, line, word, fc.constantFrom(...shapes), (a, b, text, shape) => {
        const once = print(shape(a, b, text))
        expect(print(once)).toBe(once)
      }),
      { numRuns: 500 },
    )
  })

  test('and gets the same verdict', () => {
    for (const command of medium) {
      const { plan, executables } = verdictOf(command)
      if (plan?.kind === 'script') expect(verdictOf(plan.script, policyFor())).toMatchObject({ risk: 'medium', executables })
    }
  })
})
