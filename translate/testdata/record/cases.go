package main

import (
	"slices"
	"strings"
)

const plain = "#!/bin/sh\ntrue\n"

// cases returns the calls to record.
func cases() []vector {
	var out []vector
	call := func(group string, args ...string) {
		out = append(out, vector{Name: group + " " + strings.Join(args, " "), Args: append(append([]string{"-H"}, args...), "s.sh"), Script: plain})
	}
	each := func(group, option string, values ...string) {
		for _, v := range values {
			call(group, option+v)
		}
	}
	each("time", "--time=", "0", "1", "5", "60", "1:30", "1:0:0", "0:1", "0:0:1", "1-0", "1-1", "1-1:1", "1-1:1:1", "1-", "-5", "-1", "INFINITE",
		"unlimited", "1:2:3:4", "1-2:3:4:5", "1:60", "1:99:99", "100-0", " 5", "5 ", "5:", ":5", "::", "1-:5", "1--2",
		"1.5", "+5", "5m", "0:0:61",
		"7-00:00:00", "", "Unlimited", "0-2:00:00", "2-12", "99:59", "x")
	each("mem", "--mem=", "0", "1", "1K", "1023K", "1025K", "1M", "1mb", "4G", "4GB", "1T", "1P", "-1", " 5", "5 ", "1Gi", "5.", "0.5G", "+5", "00010",
		"1B", "MB", "", "2047K")
	each("nodes", "--nodes=", "1", "2-4", "1-1", "2-", "-2", "0", "-1", "4-2", "1,3", "2 - 4", "1-4:2", "+2", "2x", "0-3", "", "*", "3-4-5", "1-3,5")
	each("ntasks", "--ntasks=", "1", "3", " 3", "3 ", "3.5", "0x3", "03", "0", "-1", "1k", "x", "")
	each("cpus", "--cpus-per-task=", "1", "2", "0", "x")
	each("array", "--array=", "1", "0-3", "1,3,5", "1-10:2", "0-10%2", "0-10:3%5", "5-1", "1,1,2", "1-3,2-4", "3,1", "0-3%0", "1-5%-1", "a", "1-", "1-3:",
		"1-10:0", "1-3,5,7-9", "[0-3]", "1-3%x", "1, 2", "01-03", "1-6:7", "0-31", "1-0x3")
	each("begin", "--begin=", "now", "now+1hour", "now+60", "now+5minutes", "now+2days", "now+1week", "tomorrow", "2030-01-02", "2030-01-02T03:04",
		"2030-01-02T03:04:05", "010230", "01/02/30", "now + 5 minutes", "tomorrow 10:00", "10:00 tomorrow", "1h",
		"now+3x", "2030-13-01", "25:00", "24:00",
		"10:61", "01/02/30-10:00", "", "uts1900000000", "5pm", "2030-1-2", "now+1min", "now+90seconds", "16:00 1/2/30", "elevenses", "2030-01-02T3:04", "foo")
	each("signal", "--signal=", "USR1", "USR1@60", "B:USR1@60", "R:10", "RB:10@5", "sigusr1", "10@", "10@x", "0", "usr1@99999", "KILL@1", "RTMIN", "B:", "@60",
		"USR1@65536", "10@-1", "TERM", "CHLD", "PIPE", "SEGV", "URG", "FOO")
	each("dependency", "--dependency=", "afterok:1", "afterany:1:2", "afterok:1,afterany:2", "afterok:1?afterany:2", "singleton", "afterok:1,singleton",
		"after:1+5", "afterok:1_1", "afterok:1_*", "aftercorr:1", "afternotok:1", "afterok:x", "afterok:", "afterok",
		"", "AFTEROK:1", "1",
		"afterok:1,afterok:1", "afterany:1,", "foo")
	each("nice", "--nice=", "5", "-5", "x", "99999999999")
	call("nice", "--nice")
	each("mail", "--mail-type=", "ALL", "begin,END", "FOO", "TIME_LIMIT_80")
	each("exclusive", "--exclusive=", "user", "foo")
	each("open-mode", "--open-mode=", "append", "truncate", "a", "t", "x")
	each("distribution", "--distribution=", "block", "cyclic", "plane=2", "arbitrary", "block:cyclic", "foo")
	each("hint", "--hint=", "nomultithread", "compute_bound", "foo")
	each("tmp", "--tmp=", "1G", "x")
	each("switches", "--switches=", "1", "1@10", "x")
	each("propagate", "--propagate=", "ALL", "STACK,NOFILE", "foo")
	for _, args := range [][]string{
		{"--foo"}, {"--foo=1"}, {"-Y"}, {"-n"}, {"--ntasks"}, {"--hold=1"}, {"--nt=2"}, {"--a"}, {"--job=x"}, {"-N2"},
		{"-N", "2"}, {"--nodes", "2"},
		{"-vN2"}, {"-N2", "--ntasks-per-node=3"}, {"-N2", "--ntasks-per-node=3", "-n", "4"}, {"-n", "3", "-N", "4"},
		{"-n", "4", "--ntasks-per-node=2"},
		{"-w", "n1,n2"}, {"-w", "n1,n2", "-N", "1"}, {"-w", "n[1-2]", "-N", "3"}, {"-x", "n1"}, {"--exclusive"},
		{"-s"}, {"--share"}, {"-O", "-n", "3"},
		{"-J", ""}, {"-J", "two words"}, {"-o", "o.txt", "-e", "e.txt", "-i", "i.txt"}, {"-o", "none"},
		{"-D", "/usr", "-o", "x"}, {"-D", "sub", "-o", "x"},
		{"--no-requeue"}, {"--requeue"}, {"-C", "fast"}, {"--mem=10", "--mem-per-cpu=20"}, {"--mem-per-cpu=20"},
		{"--mincpus=2"}, {"--wrap=x"},
		{"--priority=x"}, {"--comment=a b"}, {"-p", "nosuch"}, {"-N", "9"}, {"--tasks-per-node=2"},
		{"--deadline=foo"}, {"--cpu_bind=x"}, {"-K"}, {"-o", "/a/%j"},
		{"-F", "/nosuch"}, {"--export-file=/nosuch"}, {"-t", "5", "--time=7"}, {"-p", "debug,batch"}, {"-B", "1:2"},
		{"--gres=foo:1"}, {"--gpu-bind=foo"},
	} {
		call("call", args...)
	}
	for _, c := range []struct{ script, args, env string }{
		{"#!/bin/sh\n#SBATCH --mem=10\n", "--mem-per-cpu=20", ""},
		{"#!/bin/sh\n#SBATCH --mem=10\n", "", "SBATCH_MEM_PER_CPU=20"},
		{plain, "--mem=10", "SBATCH_MEM_PER_CPU=20"}, {"#!/bin/sh\n#SBATCH -t 5\n", "-t 7", "SBATCH_TIMELIMIT=6"},
		{"#!/bin/sh\n#SBATCH -t 5\n", "", "SBATCH_TIMELIMIT=6"},
		{"#!/bin/sh\n#SBATCH -t 5\n", "", ""}, {plain, "", "SBATCH_TIMELIMIT=x"}, {plain, "", "SBATCH_TIMELIMIT="},
		{plain, "", "SBATCH_PARTITION=batch"},
		{plain, "", "SBATCH_JOB_NAME=named"}, {plain, "", "SBATCH_OUTPUT=o.out"}, {plain, "", "SBATCH_EXCLUSIVE="},
		{plain, "", "SBATCH_REQUEUE=1"}, {plain, "", "SBATCH_NO_REQUEUE=1"},
	} {
		args := append([]string{"-H"}, strings.Fields(c.args)...)
		v := vector{Name: "precedence " + c.script + c.args + " " + c.env, Args: append(args, "s.sh"), Script: c.script}
		if c.env != "" {
			v.Env = []string{c.env}
		}
		out = append(out, v)
	}
	for _, args := range [][]string{
		{"-O", "-n", "9", "-N", "1"}, {"-O", "-n", "9", "-c", "2"}, {"-O", "-N", "2-3", "-n", "9"}, {"-c", "5"},
		{"--mincpus=5"}, {"-n", "40"}, {"-n", "4", "-c", "2"},
		{"-N", "2", "-n", "1"}, {"-n", "6", "-N", "2-3"}, {"--ntasks-per-core=1", "-n", "2"},
		{"--ntasks-per-socket=2", "-n", "4"}, {"--gpus-per-node=1", "-N", "2"},
		{"--gres=gpu:tesla:1"}, {"-G", "2", "--cpus-per-gpu=2"}, {"--mem-per-gpu=10", "-G", "1"},
		{"--exclusive", "-N", "2", "--mem=0"}, {"-C", "fast&red"}, {"-C", "[fast*1&slow*1]", "-N", "2"},
		{"-C", "fast|slow"}, {"--prefer=fast"}, {"-w", "n[1-2]", "-n", "1"}, {"-x", "n[1-2],n3"},
		{"--time-min=5", "-t", "10"}, {"--deadline=now+2hours", "-t", "10"}, {"--signal=B:10@30"},
		{"--hold", "--nice=7", "--comment=x"}, {"-o", "%x-%j.out", "-e", "%x-%j.err"}, {"-J", "a/b"},
		{"-o", "/dev/null"}, {"--array=0-9", "-o", "%A_%a"}, {"--array=1-3", "--hold"},
		{"--spread-job", "-N", "1-3"}, {"--use-min-nodes", "-N", "1-3"}, {"--contiguous", "-N", "2"},
		{"--switches=1@5", "-N", "2"}, {"-L", "nosuch:1"}, {"--reservation=nosuch"}, {"-q", "nosuch"},
		{"-A", "nosuch"},
		{"--threads-per-core=1"}, {"--hint=nomultithread", "-n", "2"}, {"--tres-per-task=cpu=2"},
		{"--wait-all-nodes=1"}, {"--no-kill"}, {"--get-user-env=L"},
	} {
		call("shape", args...)
	}
	for _, args := range [][]string{
		{"-n99999999999999999999"}, {"-B1:99999999999999999999"},
		{"--switches=99999999999999999999"}, {"--thread-spec=99999999999999999999"}, {"--ntasks-per-node=2147483647"},
		{"-S1", "--mem-per-gpu=100"}, {"--thread-spec=1", "--gpus-per-socket=1"}, {"--mem=x", "-S1"},
		{"-S1", "--mem=x"}, {"-S1", "--mem=1", "--mem-per-cpu=1"}, {"-S1", "--hint=x"}, {"-S1", "-d", "afterok:x"},
		{"--gpus-per-socket=0"}, {"--gpus-per-socket=1", "--ntasks-per-gpu=1"},
		{"--gpus-per-socket=0", "--ntasks-per-tres=1"}, {"--gpus-per-task=1", "--ntasks-per-tres=1"},
		{"-d", "afterok:x", "--gpus-per-socket=1"}, {"--signal=+5"}, {"--signal=+5@60"}, {"--chdir="},
		{"--begin=-J"}, {"--begin=--ntasks=2"}, {"--begin=-"}, {"--begin=--"}, {"--begin=4294967295"},
		{"--begin=22030-01-01"}, {"--begin=2030-01--01"}, {"--begin=12345x"}, {"--begin=12x"}, {"--begin= now"},
		{"--begin=-now"}, {"--begin=now-"}, {"--begin=nowx"}, {"--begin=1"}, {"--begin=12"}, {"--begin=123"},
		{"--begin=1234x"}, {"--begin=tomorow"}, {"--begin=10:00x"}, {"--begin=1:1"}, {"--begin=1/"},
		{"--begin=13/1/30"}, {"--begin=2030-01-01x"}, {"--begin=2030-01-01T"}, {"--begin=T"}, {"--begin=0x10"},
		{"--array=%1"}, {"--array=[1-3"}, {"--array=1-3]"}, {"--array=,"}, {"--array=1%1%2"}, {"--array=%"},
		{"-G", "--chdir=/tmp"}, {"-G", "a=b"}, {"-G", "tesla=x"}, {"--gres=gpu:a=b"}, {"--gpu-freq=medium,,high"},
		{"--hint=compute_bound", "--sockets-per-node=4"}, {"--hint=compute_bound", "--threads-per-core=1"},
		{"--hint=compute_bound", "-B1:1"}, {"--batch="}, {"--nodes=0", "-n2"},
		{"--gres=", "--gres=gpu:1"}, {"--gres=foo:1", "--gres=none"}, {"-a", "x", "-a", "1"}, {"-wn9", "-wn1"},
		{"-d", "x", "-d", "singleton"}, {"-G", "x:y", "-G", "1"}, {"-B*:2", "--ntasks-per-gpu=2"},
		{"-B1:4:1", "--gpus-per-task=2"}, {"--gpus-per-task=n1,"}, {"--cpus-per-gpu=3"}, {"--ntasks-per-socket=5"},
	} {
		call("edge", args...)
	}
	for _, c := range heterogeneous {
		args := []string{"-H", "s.sh"}
		if c.args != "" {
			args = append(strings.Fields("-H "+c.args), "s.sh")
		}
		out = append(out, vector{Name: "het " + c.args + " " + c.script, Args: args, Script: "#!/bin/sh\n" + c.script + "true\n"})
	}
	for _, s := range slices.Concat(sites, centres) {
		out = append(out, vector{Name: "site " + s, Args: []string{"-H", "s.sh"}, Script: s})
	}
	for _, s := range scripts {
		out = append(out, vector{Name: "script " + s, Args: []string{"-H", "s.sh"}, Script: s})
	}
	return out
}

// heterogeneous are jobs of several components.
var heterogeneous = []struct{ args, script string }{
	{"", "#SBATCH -n1 -J a\n#SBATCH hetjob\n#SBATCH -n2 -J b\n"},
	{"", "#SBATCH -n1 -J a\n#SBATCHhetjob\n#SBATCH -n2 -J b\n"},
	{"", "#SBATCH -n1\n#SBATCH packjob\n#SBATCH -n2\n#SBATCH packjob\n#SBATCH -n3\n"},
	{"", "#SBATCH -n1\n#SBATCH HetJob\n#SBATCH -n2\n"},
	{"", "#SBATCH hetjob\n#SBATCH -n2 -J b\n"},
	{"", "#SBATCH -n3 -J a -t 7 --comment=c1 --mem=50 --nice=5\n#SBATCH hetjob\n"},
	{"", "#SBATCH hetjob\n#SBATCH -n3 -J a -t 7 --comment=c1 --mem=50 -c 2 -N 2\n#SBATCH hetjob\n#SBATCH -n2\n"},
	{"", "#SBATCH -n1\n#SBATCH hetjobs\n"},
	{"", "#SBATCH -n1\n#SBATCH hetjob#c\n"}, {"", "#SBATCH -n1\n#SBATCH \"hetjob\"\n"},
	{"", "#SBATCH -n1\n#SBATCH hetjob # c\n#SBATCH -n2\n"},
	{"", "#SBATCH -n1\n#SBATCH hetjob:\n"}, {"", "#SBATCH -a 1-2\n#SBATCH hetjob\n"},
	{"", "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH --foo\n"},
	{"", "#SBATCH --mem=10\n#SBATCH hetjob\n#SBATCH --mem-per-cpu=20\n"},
	{"", "#SBATCH -x n1 -w n2 -C fast\n#SBATCH hetjob\n#SBATCH -n2\n"},
	{"-n1 : -n2 -J two", ""}, {"-n1 : --comment=z -t 5", ""}, {"-J one : -J two", ""}, {"-J one : -n2", ""},
	{"-n2 : -J two : -n3", ""}, {":", ""}, {"-n1 :", ""}, {"-n1 : : -n2", ""},
	{"-n1 : -n2 :", ""}, {"-n1 : -a 1-2", ""},
	{"-t 8", "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -t 9\n"},
	{"-J one --comment=z : -J two", "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -t 9\n"},
	{"-n7 : -n8", "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -n3\n"},
	{"-n1 : --comment=z -t 5", "#SBATCH --comment=s0 -t 3\n#SBATCH hetjob\n#SBATCH -t 4\n"},
	{"-t 7 --comment=z : -n2", "#SBATCH --comment=s0 -t 3\n#SBATCH hetjob\n#SBATCH --comment=s1 -t 4\n"},
	{"--mem=10 : --mem-per-cpu=20", ""}, {"-d singleton : -n2", ""},
	{"-N1 --exclusive : -N2 -s", ""}, {"-p batch : -n2", ""}, {"--no-requeue : --requeue", ""}, {"-D /usr : -n2", ""},
	{"-n1 : --nt=2", ""}, {"-n1 : --foo", ""},
	{"", "#SBATCH packjob\n#SBATCH --foo\n"}, {"", "#SBATCH --foo\n#SBATCH packjob\n"},
	{"", "#SBATCH packjob\n#SBATCH packjob\n#SBATCH --mem=x\n"}, {"", "#SBATCH packjob\n#SBATCH ED\n"},
	{"", "#SBATCH packjob\n#SBATCH --array=1-3\n"}, {"", "#SBATCH hetjob\n#SBATCH --array=1-3\n"},
	{"", "#SBATCH packjob\n#SBATCH --mem=1 --mem-per-cpu=1\n"}, {"", "#SBATCH packjob\n#SBATCH --mem-per-gpu=100\n"},
	{"", "#SBATCH -n1 hetjob\n#SBATCH -n2\n"}, {"", "#SBATCH -n1\n#SBATCH hetjob --foo\n#SBATCH -n2\n"},
	{"--gpus-per-node=1 --mem=0 : --mem=20", ""}, {"-C fast : -C slow", ""}, {"--qos=normal -A root : -n2", ""},
}

var scripts = func() []string {
	out := []string{"", "  \n", "true\n", "\n#!/bin/sh\n", "#!/bin/sh", "#! /bin/sh\n", "# comment\n", "#!/bin/sh\r\n#SBATCH -J a\r\n", "#!/bin/sh\x00\n",
		"#!/bin/sh\n#SBATCH -n 2\necho\n#SBATCH -n 3\n", "#!/bin/sh\n#SBATCH -n 2\n# c\n#SBATCH -n 3\n",
		"#!/bin/sh\n#SBATCH -n 2\n\n \n\t\n#SBATCH -n 3\n",
		"#!/bin/sh\n#SBATCH -n 2\n\t#SBATCH -n 3\n#SBATCH --comment=z\n",
		"#!/bin/sh\n##SBATCH -n 2\n# SBATCH -n 2\n#sbatch -n 2\n",
		"#!/bin/sh\n: <<E\n#SBATCH -n 2\nE\n", "#!/usr/bin/env python3\n\"\"\"\n#SBATCH -n 2\n\"\"\"\n", "#!/bin/sh\n#SBATCH -n 2\n#SBATCH -n 4"}
	for _, d := range []string{" --foo", " -Y", " foo", " -J a b", " -J a # b", " -J a #b", " -J a#b", ` -J "a b"`, ` -J "a b`, ` -J 'a b' -n 2`, ` -J a\ b`,
		` --job-name="a"b`, "", "foo", "-n 2", "\t-n 2", "--n x", "   ", ` --comment="a # b" -n 2`, " -- -n 2", " -n 3 --", " -n 3 -- foo", " -t", " -t x",
		" -n 2 -N 2 -t 5", ` --comment=a\#b`, ` --comment="a\"b" -n 2`, ` --comment='a"b' -n 2`, ` --comment='a\'b' -n 2`, ` --comment="a\\b" -n 2`,
		` --comment=a"b c"d -n 2`, ` --comment "two words" -n 2`, ` --comment a\b -n 2`, ` --comment="a b -n 2`, ` --comment='a b -n 2`, ` --comment=a\`,
		` --comment="" -n 2`, ` --comment="a""b" -n 2`, ` --comment=$HOME -n 2`, ` "-n" 2`, ` "--comment=a b" -n 2`, ` ""`, ` -n 2 ; true`, ` -n 2 \`,
		` -n 2#c`, ` -n 2 # "unclosed`, ` --help`, ` --wrap=x`, ` -J ring # a comment`, ` -t 0-2:00:00`, ` --nodes=2 --ntasks-per-node=1`, ` -o ring-%j.out`} {
		out = append(out, "#!/bin/sh\n#SBATCH"+d+"\ntrue\n")
	}
	// The lines are one list of arguments; an empty word or a separator ends a line.
	for _, d := range []string{"-n\n#SBATCH 3", "--comment\n#SBATCH -n2\n#SBATCH -N1", "-J\n#SBATCHx", "-J 'a\n#SBATCH b'",
		"--comment\n\n# a comment\n#SBATCH -n2", "-J", "-nx\n#SBATCHED", "ED\n#SBATCH -nx", "--foo\n#SBATCH -nx",
		"-nx\n#SBATCH --foo", "--time\n#SBATCH --cpus-per-task=2", "--cpu-freq\n#SBATCH --no-requeue", `-J a "" -nx`, `"" -nx`,
		"-J ''\n#SBATCH -n2", `-J ""b -n2`, "-n1 hetjob -nx", "-n1 HETJOB", `-n1 "hetjob"`, "-n1 packjob",
		"-J hetjob\n#SBATCH -n2", "--gres ::1", ":", "-n1 : -n2", "-J a:b", "-J :b", `-J ":"`, `-J "":b`, `-J \:x`, `-J "a":b`, "\t:", ": -n1",
		"--hint=", "--hint=x -J a", "--hint=x ED", "--hint=x --mem=x", "--hint=x --ntasks-per-core=1", "-B0", "-B0:1", "-B1:0", "-B-1",
		"--power=x", "--power=x --power=y", "-S1 -S1", "--partition='' --time-min=0", "--qos=NORMAL", "--qos=Normal -n2",
		"--nodes=-x", "--nodes=--x", "--nodes=-", "--nodes=-1x", "--nodes=--1", "-B1-", "-B--time=2", "-B0-1", "-B2-1", "--no-kill=set", "--no-kill=x",
		"--cpu-freq=x-y", "--cpu-freq=low-x", "--cpu-freq=1-", "--cpu-freq=low:x", "--cpu-freq=low-high:x", "--cpu-freq=5-4", "--cpu-freq=highm1-high",
		"--cpu-freq=performance:x", "--cpu-freq=1k", "--cpu-freq=0", "--cpu-freq=4294967296", "--cpu-freq=1-2-3"} {
		out = append(out, "#!/bin/sh\n#SBATCH "+d+"\ntrue\n")
	}
	return out
}()

// environments are jobs whose environment is recorded.
func environments() []envVector {
	job := func(step string, args ...string) envVector {
		return envVector{Args: args, StepArgs: strings.Fields(step)}
	}
	return []envVector{
		job("", "-n", "1"), job("", "-N", "2"), job("-n 3", "-N", "2", "-n", "4"),
		job("-n 3", "-N", "3", "--ntasks-per-node=1"), job("-n 5", "-n", "5", "--mem=100"),
		job("-n 2", "-c", "2", "-n", "2", "--mem-per-cpu=50", "-J", "my job"), job("-n 1", "--gres=gpu:1"),
		job("", "-N2", "--gres=gpu:tesla:2"), job("", "-G", "1"),
		job("", "--gpus-per-node=1"), job("", "--gpus-per-task=1", "-n", "2"), job("", "--exclusive"),
		job("", "--exclusive", "--mem=0", "-N", "2"), job("", "-O", "-n", "8"),
		job("-n 4", "-N", "2", "--ntasks-per-node=2", "-c", "2"), job("", "-n", "3", "-m", "cyclic"),
		job("", "--ntasks-per-socket=1", "-n1"), job("", "--threads-per-core=1"),
		job("", "--mem-per-gpu=10", "-G1"), job("", "--nice=5", "--comment=hi"), job("", "-N", "2-3"),
		job("", "--cpus-per-gpu=2", "-G1"), job("", "--ntasks-per-node=2"),
		job("", "--ntasks-per-gpu=2", "-G1"), job("", "-n2", "-d", "singleton"), job("", "--mincpus=2"),
		job("", "-p", "batch"), job("", "--open-mode=append", "--profile=none"),
		job("--ntasks-per-node=1 --kill-on-bad-exit --mpi=none --nodes=2 --nodelist=n1,n2 --ntasks=2", "-N3", "-n3",
			"-w", "n1,n2"),
		job("-N 2 -n 2 -c 2", "-N", "2", "-n", "4"), job("-n 4 -m cyclic", "-N", "2", "-n", "4"),
		job("-N 2", "-N", "2"), job("-r 1 -N 1", "-N", "2"),
		job("", "--hint=nomultithread"), job("", "--hint=compute_bound", "-n2"),
		job("", "--ntasks-per-core=1", "-n2"), job("", "-B", "1:2"), job("", "--sockets-per-node=1"),
		job("", "--cores-per-socket=2"), job("", "--exclusive=user"), job("-n 2", "-m", "plane=2", "-n4", "-N2"),
		job("-n 2", "-m", "block:cyclic", "-n2"), job("", "--mem-bind=local"),
		job("", "--cpu-freq=low"), job("", "--gpu-bind=closest", "-G1"), job("", "--gpu-freq=low", "-G1"),
		job("", "--gpus-per-socket=1", "--sockets-per-node=1"), job("", "--spread-job", "-N2"),
		job("", "--use-min-nodes", "-N1-2"), job("", "--contiguous", "-N2"), job("", "--switches=1"),
		job("", "--no-kill"), job("", "--wait-all-nodes=1"), job("", "--acctg-freq=5"),
		job("", "--profile=task"), job("", "--propagate=NONE"), job("", "--signal=B:USR1@5"), job("", "--time-min=1"),
		job("", "--deadline=now+1hour"), job("", "-A", "root", "-q", "normal"),
		job("", "--wckey=w"), job("", "--requeue"), job("", "--no-requeue"), job("", "-s"), job("", "--tmp=1"),
		job("", "-C", "fast"), job("", "-w", "n2"),
		job("", "-x", "n1"), job("", "-c", "3"), job("-c 2 -n 1", "-n", "2", "-c", "2"), job("-l -n 2", "-n", "2"),
		job("--gpus-per-task=1 -n 2", "-n", "2", "-G", "2"), job("--exact -n 1 -c 1", "-n", "3"),
		job("-N 2 --ntasks-per-node=2", "-N", "2", "--ntasks-per-node=2"), job("--mem=50 -n1", "--mem=200"),
		job("-J other -n 1", "-n", "1"), job("-x n1 -n 1 -N1", "-N", "2"),
		job("", "-n4", "--ntasks-per-gpu=2"), job("-n 5", "-N2", "-n5"), job("-n 2", "-N1", "-n2", "-c2", "--mem=600"),
	}
}
