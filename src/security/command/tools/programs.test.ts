import { describe, expect, test } from 'bun:test'
import { ratingOf, verdictOf } from '../policy.fixture.ts'
import { refusedAwk } from './awk.ts'
import { refusedSed } from './sed.ts'

describe('sed', () => {
  test.each([
    'e',
    '1e id',
    '$e',
    '/x/e id',
    '/x/!e',
    '{e\n}',
    'p;e',
    'p\ne id',
    's/a/b/e',
    's/a/b/ge',
    's/a/b/ e id',
    's,a,b,e',
    'w f',
    'W f',
    'r f',
    'R f',
    '1r/etc/x',
    's/a/b/w f',
    's/a/b/gw f',
    ':a e id',
    'bx;:x e id',
    'b\ne id',
    'y/a/b/;e',
    '\\,x,e',
    '/[/]/e',
    's/[/]/e',
    's/[/]x/e/g',
    '1,2e',
    '1,/x/e',
    '1~2e',
    '/a/I,+3e',
    'a\\\nx\ne',
    'a x\ne',
    'i x\nw f',
    '#x\ne',
    '}e',
    'q5;e',
    'l 3;e',
    '/a/,e',
    'v',
    's/a',
    '/x',
    's a b ',
  ])('refuses %j', (script) => expect(refusedSed(script)).toBeDefined())

  test.each([
    'p',
    '$p',
    '1,5p',
    '/e/p',
    '/w f/d',
    's/e/w/',
    's/a/e/g',
    's#/etc#/x#',
    's/\\/e/x/',
    's/[^/]*$//',
    's|a|e|2',
    'y/abc/ewr/',
    'a e id',
    'i\\\ne id',
    '2c w f',
    ':a;N;$!ba;s/\\n/ /',
    '/e/!{s/w/r/;p}',
    '0~3d',
    '/a/,/b/{/e/d}',
    '$!N;P;D',
    '=',
    'q',
    'l',
    'n;d',
    '# e',
    's/a/b/Ig;s/c/d/p',
    '\\|e|d',
    's/[]/]/x/',
    's/[[:space:]/]//g',
  ])('lets %j be', (script) => expect(refusedSed(script)).toBeUndefined())

  test('what it would run or write is judged as well', () => {
    expect(ratingOf("sed '1e rm x' f")).toBe('blocked')
    expect(ratingOf("sed 's/a/rm x/e' f")).toBe('blocked')
    expect(ratingOf("sed 'w /etc/x' f")).toBe('blocked')
    expect(ratingOf("sed 's/a/b/w .git/hooks/x' f")).toBe('blocked')
  })
})

describe('awk', () => {
  test.each([
    'BEGIN{system("id")}',
    'BEGIN{system ("id")}',
    '{print | "sh"}',
    '{print|"sh"}',
    '{printf "%s" , $0 | "sh"}',
    '{print |& "sh"}',
    '"id" | getline',
    '{getline x < "f"}',
    '{print > "f"}',
    '{print>"f"}',
    '{print >> f}',
    '{print $1, $2 > f}',
    '{print (1)(2) > "f"}',
    '@load "x"',
    '@include "x"',
    '{@f()}',
    'BEGIN{ARGV[1]="x"}',
    '{print /"/ | "sh" /"/}',
    'BEGIN{if(1)/"/;print"x"|"sh";x="/"}',
    '{x=")";print y | "sh"}',
    '{print "unclosed}',
    '/unclosed',
    'BEGIN{if(1)/"/;print "x"|"sh";if(1)/"/}',
    '{a[1]/1;print|"sh"}',
    '{x++ /"/ ; print | "sh" ; "/"}',
    '# |\n{print | "sh"}',
  ])('refuses %j', (program) => expect(refusedAwk(program)).toBeDefined())

  test.each([
    '{print}',
    '1',
    '$3 > 5',
    '$3>5{print}',
    '/a|b/',
    '!/a|b/{print}',
    '{print $1 "|" $2}',
    '{print "a > b"}',
    '{print (a > b)}',
    'a || b',
    '{print $1/2}',
    '{x = $1 / $2; y = 3 / 4}',
    '/\\//{print}',
    '{gsub(/"/, "|"); print}',
    '{n=split($0,a,/[|]/)}',
    '# print > x',
    '{print > "/dev/stderr"}',
    'BEGIN{FS="|"}',
    '{print "system"}',
    '/system/',
    'NR % 2 { print; next }',
    'function f(a) { return a / 2 }',
    '{ if ($1 ~ /^>/) print }',
  ])('lets %j be', (program) => expect(refusedAwk(program)).toBeUndefined())

  test('what it would run or write is judged as well', () => {
    expect(ratingOf(`awk 'BEGIN{system("rm x")}'`)).toBe('blocked')
    expect(ratingOf(`awk '{print > "/etc/x"}' f`)).toBe('blocked')
  })
})

describe('options', () => {
  test.each([
    'sort -o/etc/x y',
    'sort -uo /etc/x y',
    'sort -uo/etc/x y',
    'sort y -o /etc/x',
    'sort --output=/etc/x y',
    'sort --output /etc/x y',
    'sort -k1 -t, -o ../x y',
    'sort -- /etc/x',
    'grep -rnf /etc/x .',
    'grep -e a -- /etc/x',
    'cp -rt /etc x',
    'tar -cvzf/etc/x .',
    'tar cvfz /etc/x .',
  ])('a path is found in %j', (command) => expect(ratingOf(command)).toBe('blocked'))

  test.each([
    'sort --outp=x y',
    'sort --compress-p=x y',
    'grep --fil=x y',
    'tar --to-c=x -xf y',
    'rg --hostname-b x y',
    'git fetch --upl=x origin',
  ])('an abbreviation is not taken on trust: %j', (command) => expect(ratingOf(command)).toBe('high'))

  test.each([
    'sort -t/ -k2 x',
    'sort -t / x',
    'cut -d/ -f1 x',
    'grep -e /etc x',
    'grep --include=/x -r a .',
    'find . -path /etc',
    'git log --grep=/etc',
    'git commit -m ../x',
    'date -d /x',
    'basename /etc/x',
    'echo -I/usr/include --prefix=/usr',
    "printf '%s' -v -o/etc",
    'jq --arg a /etc . x',
  ])('data that looks like a path is data: %j', (command) => expect(ratingOf(command)).toBe('medium'))

  test.each(['sed -n p *', 'sort *', 'tar cf x.tar *', 'find *', 'rg x *', 'git add *'])(
    '%s cannot be led astray by a file name',
    (command) => expect(ratingOf(command)).toBe('medium'),
  )

  test.each(['sed -n p $(ls)', 'sort $x', 'tar cf x.tar $(git ls-files)', 'sed $x p y', 'grep $x y z', 'ls -*'])('%s could be', (command) =>
    expect(ratingOf(command)).toBe('high'),
  )
})

describe('ln -s', () => {
  const rating = (command: string) => verdictOf(command).verdict

  test('means its target from the folder of the link', () => {
    for (const command of ['ln -s ../a.md docs/a.md', 'ln -sf ../../a b/c/', 'ln -s a.md b.md', 'ln -sfn ../v2/x v/current'])
      expect([command, rating(command), ratingOf(command, { allow: ['ln'] })]).toEqual([command, 'run', 'medium'])
  })

  test('out of the workspace or to a protected file is blocked, and so is what is not certain', () => {
    for (const command of [
      'ln -s ../../a.md docs/a.md',
      'ln -s ../a.md b.md',
      'ln -s ../.git/hooks/x docs/x',
      'ln -s /etc/passwd x',
      'ln -s ~/.ssh/id x',
      'ln -s a ../b',
      'ln ../a.md docs/a.md',
      'ln -s -t docs ../a.md',
      'ln -s ../a ../b docs/x',
      'ln -s ../a.md "$x/y"',
    ])
      expect([command, rating(command)]).toEqual([command, 'blocked'])
  })
})
