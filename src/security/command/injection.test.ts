/** Tests how tools that only read or edit were seen to write or run something unjudged. Each case was tried on the real program. */

import { describe, expect, test } from 'bun:test'
import { ratingOf } from './policy.fixture.ts'
import { refusedAwk } from './tools/awk.ts'
import { refusedSed } from './tools/sed.ts'

describe('sed: where a text ends', () => {
  test.each(['a foo\\\\\nw f', 'i foo\\\\\n1e id', 'c\\\nfoo\\\\\ne id', 'a foo\\\\\\\nw f'])('%j is not followed', (script) =>
    expect(refusedSed(script)).toBeDefined(),
  )
  test.each([':a}s;w f;x;', 'ba}s;w f;x;', 't}y;w f;abcdef;'])('a label that not all seds end alike, %j, is not followed', (script) =>
    expect(refusedSed(script)).toBeDefined(),
  )
  test('the parts of one script are read as one', () => {
    expect(ratingOf("sed -e 'i\\' -e 's/x/\nw f\n#/' x")).toBe('high')
    expect(ratingOf("sed -e 'i\\' -e p -e 'w f' x")).toBe('high')
    expect(ratingOf("sed -e 'i\\' -e 'what is said' -e p x")).toBe('medium')
    expect(ratingOf("sed -e '/a/{' -e 's/b/c/' -e '}' x")).toBe('medium')
  })
  test('a delimiter of several bytes is not followed', () => expect(refusedSed('s😀a😀b😀')).toBeDefined())

  test.each(['a foo\\\nbar', 'i\\\nx\\\ny', 'a back\\\\slash', '/x/{s/a/b/;ta};p', ':a;N;$!ba;s/a/b/', '$!{N;b};p'])(
    '%j may run',
    (script) => expect(refusedSed(script)).toBeUndefined(),
  )

  test('every spelling of --in-place writes', () => {
    for (const option of ['--in-place', '--in-plac', '--in', '--i', '--in-plac=.bak'])
      expect(ratingOf(`sed ${option} s/a/b/ .git/config`)).toBe('blocked')
    expect(ratingOf('sed --in-plac s/a/b/ x')).toBe('medium')
  })
})

describe('awk: what a print writes to', () => {
  test.each([
    'BEGIN{print "x" > "/dev/stdout" ? "f" : 0}',
    'BEGIN{print "x" > "/dev/stderr" "f"}',
    'BEGIN{print "x" > "/dev/stderr" x}',
    'BEGIN{print "x" >> "/dev/stdout" + 1}',
    'BEGIN{print "x",\n"y" > "f"}',
    'BEGIN{print "x", # more\n\n"y" > "f"}',
    'BEGIN{print 1 &&\n 2 > "f"}',
    'BEGIN{print 0 ||\n 2 > "f"}',
    'BEGIN{if(0) exit /"/; print "x" > "f" #"\n}',
    'BEGIN{x=1\n/"/; print "x" > "f" #"\n}',
    'BEGIN{x=y # c\n/"/; print "x" > "f" #"\n}',
    'BEGIN{y=$/"/; print "x" > "f" #"\n}',
    'BEGIN{y=length /"/; print "x" > "f" #"\n}',
    'BEGIN{x=1./2; print "x" > "f"; y=2/1}',
    'BEGIN{print "x" \\\r\n > "f"}',
  ])('refuses %j', (program) => expect(refusedAwk(program)).toBeDefined())

  test.each([
    '{print "x" > "/dev/stderr"}',
    '{print "x" > "/dev/stderr"; n++}',
    '{print > "/dev/stdout" # said\n}',
    '{print $1,\n$2}',
    '{x = $1\n/a/\n}',
    '{if ($1 > 2)\nprint $1}',
    '$1 > 2 ||\n$2 > 3 {print}',
    '{print $NF / 2}',
    '{print 1. / 2, 3.5 / 2}',
  ])('lets %j be', (program) => expect(refusedAwk(program)).toBeUndefined())
})

describe('names that nobody wrote out could be options', () => {
  test.each([
    'ls | xargs sed -n p',
    'ls | xargs rg foo',
    'ls | xargs sort',
    'ls | sort | head -3 | xargs sort',
    'ls | xargs tar cf out.tar',
    'ls | xargs git diff',
    'git ls-files | xargs rg foo',
    'git diff --name-only | xargs sed -i s/a/b/',
    'rg --files | xargs sort',
    'rg -l foo | xargs sed -i s/a/b/',
    'grep -rl foo | xargs sed -i s/a/b/',
    'ls | xargs -I{} sed -n p {}',
    'ls | xargs -i sort {}',
    'ls | xargs --replace=p sed -n p',
    'ls | xargs --replac=p sed -n p',
    'basename x | xargs sort',
    'find . -name "*.ts" | xargs sed -i s/a/b/',
    'find . -name x | xargs -I{} sed -n p {}',
    'grep -rl foo src | xargs sed -i s/a/b/',
    'find . -print0 | xargs -0 -I{} sort -{}',
    'find . -print0 | grep -l foo x | xargs -0 sort',
    'find . -print0 | sort | xargs -0 sort',
    'find . -print0 | xargs -0 -d "\\n" sort',
    'find . -print0 | xargs -0 --delim="\\n" sort',
    'find src -exec sort $(ls){} \\;',
    'ls | xargs git grep',
    'ls | xargs -I{} git grep {}',
    'ls | xargs -I{} sort {} -- a',
    'ls | xargs -Ifoo -I{} sort {}',
    'ls | xargs -I{} -n2 sort',
    'ls | xargs -I{} -L1 sort',
    'ls | xargs -i -l sort',
    'cat f | xargs -I{} --max-lines=2 cat',
    'ls | xargs -I{} git diff {} -- a',
    'sort $(ls) -- a',
  ])('%s', (command) => expect(ratingOf(command)).toBe('high'))

  test.each([
    'find . -name "*.ts" -print0 | xargs -0 sed -i s/a/b/',
    'find . -name "*.ts" -print0 | sort -z | xargs --null sed -i s/a/b/',
    'find . -name "*.ts" | xargs sed -i s/a/b/ --',
    'find . -name x -exec sed -i s/a/b/ {} +',
    'find . -name x -exec sort {} \\;',
    'rg -l foo | xargs sed -i s/a/b/ --',
    'git ls-files | xargs sort --',
    'git ls-files | xargs git add --',
    'git ls-files | xargs wc -l',
    'git ls-files | xargs -I{} sort ./{}',
    'ls | xargs cat',
    'ls | xargs -I{} -n1 cat {}',
    'ls | xargs -L2 -I{} cat {}',
    'ls | xargs git grep foo --',
    'ls | xargs git grep -e foo --',
    'sort -- $(ls)',
  ])('%s may run', (command) => expect(ratingOf(command)).toBe('medium'))
})

describe('names that nobody wrote out could be protected ones', () => {
  test.each([
    'cd .git && echo x | tee -a conf*',
    'cd .git && touch c[o]nfig',
    'cd .git; touch *',
    'cd .git && ls ../stage | xargs touch',
    'ls stage | xargs -I{} tee .git/{}',
    'ls stage | xargs -I{} touch .{}',
    'find stage -type f | xargs -I{} touch .git/{}',
    'for f in a b; do touch .git/$(basename $f); done',
  ])('%s', (command) => expect(ratingOf(command)).not.toBe('medium'))
  test.each(['touch *.x', 'cd src && touch *', 'ls | xargs touch', 'cd .git && cat *', 'for f in *.md; do cp "$f" out/; done'])(
    '%s may run',
    (command) => expect(ratingOf(command)).toBe('medium'),
  )
})

test('a second name for a file, which would be written past what protects the first, is not made', () => {
  for (const option of ['-l', '--link', '-s', '--symbolic-link', '-al', '--symb'])
    expect(ratingOf(`cp ${option} .git/config x`)).toBe('high')
  expect(ratingOf('cp -a src out')).toBe('medium')
})

test('tar unpacks into no folder that is not put to the gate', () => {
  for (const option of ['--one-top-level=.git', '--one-top=.git', '--one-top-level'])
    expect(ratingOf(`tar xf a.tar ${option}`)).toBe('high')
})

test('what the environment forbids is not forgotten', () => {
  for (const command of [
    'env -i git status',
    'env --ignore-environment git status',
    'env --ign git status',
    'env -i FOO=1 ls',
    'exec -c git status',
    'exec -cl ls',
  ])
    expect(ratingOf(command)).toBe('high')
  for (const command of ['env FOO=1 git status', 'env --ignore-signal=PIPE ls']) expect(ratingOf(command)).toBe('medium')
})

test('every spelling of --worktree throws changes away', () => {
  for (const option of ['-W', '--worktree', '--worktre', '--w']) expect(ratingOf(`git restore --staged ${option} x`)).toBe('high')
  expect(ratingOf('git restore --staged x')).toBe('medium')
})

test('one letter is spelling enough for a long option', () => {
  for (const command of ["sed --e='1e id' p", 'sort --o .git/config x', 'sort --o=.gitmodules x', "env --s='touch x' ls"])
    expect(ratingOf(command)).not.toBe('medium')
})

describe('what xargs makes of a text', () => {
  const many = Array.from({ length: 16 }, (_, at) => `a${at}\\n`).join('')
  test.each([
    `echo "'/etc/passwd'" | xargs cat`,
    `echo "'-o.git/config'" | xargs -I{} sort x {}`,
    "printf '/etc/passwd\\0' | xargs -0 cat",
    "printf 'x,/etc/passwd' | xargs -d, cat",
    "printf 'x,-o.git/config' | xargs --delimiter=, sort",
    "printf 'x,-o.git/config' | xargs -d, -I{} sort {}",
    `printf '${many}/etc/passwd' | xargs -I{} cat {}`,
  ])('%s', (command) => expect(ratingOf(command)).toBe('high'))
  test.each(["printf 'a\\nb' | xargs -I{} cat {}", 'echo a b | xargs cat', "printf '%s\\n' a b | xargs -I{} mkdir -p {}"])(
    '%s may run',
    (command) => expect(ratingOf(command)).toBe('medium'),
  )
})

test('what xargs puts behind an unknown beginning is as unknown', () => {
  expect(ratingOf('ls | xargs -I{} cat $(cat f){}')).toBe('high')
  expect(ratingOf('ls | xargs -I{} cat src/{}')).toBe('medium')
})
