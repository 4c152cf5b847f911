from mpi_compress.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
