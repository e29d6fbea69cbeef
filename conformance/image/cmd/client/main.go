// Command client is package client as a program, for a container or a network namespace.
//
//	client ask ADDR
//	client produce ADDR TOPIC VALUE...
//	client consume ADDR TOPIC GROUP N
//	client chown UID:GID DIR   the directory with all that is in it
package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/dozekafka/doze-kafka/conformance/image/client"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "ask":
		told, err := client.Ask(ctx, args[1])
		if err == nil {
			fmt.Println(told)
		}
		return err
	case len(args) > 3 && args[0] == "produce":
		return client.Produce(ctx, args[1], args[2], args[3:]...)
	case len(args) == 5 && args[0] == "consume":
		n, err := strconv.Atoi(args[4])
		if err != nil {
			return err
		}
		values, err := client.Consume(ctx, args[1], args[2], args[3], n)
		for _, v := range values {
			fmt.Println(v)
		}
		return err
	case len(args) == 3 && args[0] == "chown":
		return chown(args[1], args[2])
	}
	return fmt.Errorf("ask ADDR | produce ADDR TOPIC VALUE... | consume ADDR TOPIC GROUP N | chown UID:GID DIR, not %q", args)
}

func chown(owner, dir string) error {
	var uid, gid int
	if _, err := fmt.Sscanf(owner, "%d:%d", &uid, &gid); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, uid, gid)
	})
}
